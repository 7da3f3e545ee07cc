"""The numbers of the paper, as printed there, to stand beside ours. All on nuPlan with the full-size models."""

from __future__ import annotations

METRICS = ("Score", "Collision", "TTC", "Drivable", "Progress", "Speed", "Comfort")
SPLITS = {"val": "val14", "random": "test14-random", "hard": "test14-hard"}  # end of our names -> theirs

PERFORMANCE = {  # split -> planner -> METRICS, reactive agents
    "val14": {
        "Diffusion Planner": (82.70, 92.98, 87.84, 97.85, 96.60, 98.29, 89.45),
        "RADP": (81.37, 94.01, 89.53, 98.03, 94.90, 98.87, 89.27),
    },
    "test14-random": {
        "Diffusion Planner": (82.82, 94.06, 89.66, 98.08, 97.70, 97.07, 85.44),
        "RADP": (84.48, 96.36, 91.95, 98.08, 96.93, 97.98, 87.36),
    },
    "test14-hard": {
        "Diffusion Planner": (68.94, 86.95, 79.78, 94.85, 92.65, 97.39, 85.29),
        "RADP": (70.62, 92.10, 83.46, 95.59, 90.07, 98.29, 85.29),
    },
}
OVERVIEW = {  # planner -> val14, test14-random, test14-hard; reactive scores
    "Log-replay": (80.32, 75.86, 68.80),
    "PDM-Open": (54.24, 57.23, 35.83),
    "UrbanDriver": (64.11, 67.15, 49.95),
    "GameFormer": (8.69, 9.31, 6.69),
    "PlanTF": (76.95, 79.58, 61.61),
    "PLUTO": (78.11, 78.62, 59.74),
    "Diffusion Planner": (82.70, 82.82, 68.94),
    "RADP": (81.37, 84.48, 70.62),
}
NONREACTIVE = {  # split -> Diffusion Planner, RADP
    "val14": (89.65, 88.72),
    "test14-random": (88.88, 89.46),
    "test14-hard": (75.01, 74.80),
}
FIDELITY = {  # split -> macro Spearman, MAE, Top-1 [%], teacher rho, head rho, each with its interval
    "val14": ("0.536 [0.525, 0.547]", "0.216 [0.209, 0.222]", "70.6 [69.4, 71.8]", "0.235 [0.213, 0.256]",
              "0.207 [0.183, 0.229]"),
    "test14-random": ("0.570 [0.552, 0.588]", "0.200 [0.188, 0.212]", "71.7 [69.5, 73.9]", "0.199 [0.133, 0.258]",
                      "0.177 [0.119, 0.233]"),
    "test14-hard": ("0.554 [0.537, 0.571]", "0.238 [0.224, 0.251]", "71.9 [69.7, 74.0]", "0.221 [0.184, 0.255]",
                    "0.192 [0.151, 0.231]"),
}  # fmt: skip
ALIGNMENT = {  # val14: endpoint -> positive rate, then (teacher, head) of AUPRC, lift, rho with intervals, shuffled rho
    "collision": ("2.37%", ("0.540 [0.481, 0.604]", "0.514 [0.452, 0.578]"),
                  ("1.823 [1.388, 2.257]", "1.598 [1.184, 2.019]"), ("0.234 [0.158, 0.302]", "0.160 [0.077, 0.252]"),
                  ("0.001", "-0.002")),
    "ttc": ("4.11%", ("0.555 [0.516, 0.598]", "0.489 [0.450, 0.527]"),
            ("1.926 [1.640, 2.212]", "1.610 [1.334, 1.896]"), ("0.237 [0.196, 0.274]", "0.158 [0.115, 0.198]"),
            ("-0.000", "-0.000")),
    "lane": ("49.31%", ("0.911 [0.894, 0.928]", "0.840 [0.815, 0.864]"),
             ("1.518 [1.422, 1.617]", "1.340 [1.260, 1.428]"), ("0.314 [0.283, 0.345]", "0.234 [0.206, 0.265]"),
             ("0.001", "0.000")),
    "speed": ("6.87%", ("0.779 [0.725, 0.829]", "0.761 [0.701, 0.816]"),
              ("1.890 [1.553, 2.254]", "1.895 [1.556, 2.285]"), ("0.303 [0.198, 0.402]", "0.297 [0.200, 0.388]"),
              ("-0.001", "-0.001")),
    "kinematics": ("0.013%", ("0.167 [0.167, 0.167]", "0.250 [0.250, 0.250]"),
                   ("0.000 [0.000, 0.000]", "0.000 [0.000, 0.000]"), ("0.112 [0.079, 0.143]", "0.159 [0.123, 0.194]"),
                   ("-0.000", "0.000")),
    "comfort": ("0.102%", ("0.376 [0.162, 0.679]", "0.371 [0.156, 0.598]"),
                ("1.750 [0.000, 4.375]", "1.750 [0.000, 3.500]"), ("0.102 [0.072, 0.133]", "0.122 [0.089, 0.155]"),
                ("0.000", "-0.000")),
    "goal": ("47.06%", ("0.850 [0.829, 0.871]", "0.798 [0.774, 0.822]"),
             ("1.804 [1.687, 1.924]", "1.626 [1.513, 1.740]"), ("0.343 [0.314, 0.370]", "0.316 [0.286, 0.345]"),
             ("0.005", "0.027")),
}  # fmt: skip
LATENCY = {  # method -> latency ms, overhead; RTX 4080
    "Planner only": ("251.05 ± 39.04", "-"),
    "Planner + Head": ("245.50 ± 30.43", "-1.64% ± 6.67%"),
    "Planner + exact Teacher": ("465.29 ± 66.46", "+89.18% ± 38.35%"),
    "Planner + gradient guidance": ("571.10 ± 52.64", "+130.76% ± 30.01%"),
    "Exact Teacher on cached states": ("62.51 ± 3.69", "1.00x"),
    "Head on cached states": ("8.18 ± 1.20", "7.65x faster"),
}
ABLATION = {  # test14-hard, reactive -> METRICS
    "Collision-Guided Diffusion Planner": (59.92, 76.65, 68.75, 90.44, 95.96, 96.00, 60.66),
    "FFN-LoRA (no rules)": (69.20, 88.42, 81.62, 95.96, 90.44, 98.37, 86.03),
    "No normalization": (67.78, 85.11, 77.57, 93.75, 93.38, 95.93, 84.56),
    "RADP": (70.62, 92.10, 83.46, 95.59, 90.07, 98.29, 85.29),
}


def overview_nonreactive() -> dict[str, tuple[float, ...]]:
    """planner -> val14, test14-random, test14-hard; the paper has two planners with agents that replay the log."""
    scores = zip(*(NONREACTIVE[split] for split in SPLITS.values()))
    return dict(zip(("Diffusion Planner", "RADP"), scores))


def their_split(name: str) -> str | None:
    """sumo14-hard -> test14-hard; None for a split that the paper has no counterpart of."""
    return next((theirs for end, theirs in SPLITS.items() if name.rstrip("/").endswith(end) or name == theirs), None)
