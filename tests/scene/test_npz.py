import json

import numpy as np
import pytest
import torch

from radp.scene.npz import NpzFolder, read_index, read_npz, write_npz
from tests.made_scenes import made_scene


def test_a_written_folder_reads_back_equal(tmp_path):
    scene = made_scene(batch=3)
    names = write_npz(tmp_path, scene, ["boston", "boston", "sumo"], ["a1", "b2", "c3"])
    assert names == ["boston_a1.npz", "boston_b2.npz", "sumo_c3.npz"]
    (tmp_path / "train.json").write_text(json.dumps(names[::-1]))
    assert read_index(tmp_path / "train.json") == names[::-1]
    folder = NpzFolder(tmp_path, tmp_path / "train.json")
    again = folder.batch([2, 1, 0])
    for name, value in scene.items():
        assert torch.equal(getattr(again, name), value) and getattr(again, name).dtype == value.dtype
    with np.load(tmp_path / names[2]) as arrays:  # as the published files name themselves
        assert (str(arrays["map_name"]), str(arrays["token"])) == ("sumo", "c3")
    assert len(NpzFolder(tmp_path)) == 3 and len(folder[0]) == 1


def test_files_without_futures_are_scenes_too(tmp_path):
    write_npz(tmp_path, made_scene(batch=1).without_future(), ["m"], ["t"])
    assert read_npz(tmp_path / "m_t.npz").ego_agent_future is None


def test_bad_files_say_what_is_wrong(tmp_path):
    np.savez(tmp_path / "half.npz", lanes=np.zeros((70, 20, 12), np.float32))
    with pytest.raises(ValueError, match=r"half\.npz.*missing: ego_current_state, neighbor_agents_past"):
        read_npz(tmp_path / "half.npz")
    arrays = {name: value[0].numpy() for name, value in made_scene(batch=1).items()}
    np.savez(tmp_path / "pickled.npz", **(arrays | {"lanes": np.array([{}], dtype=object)}))
    with pytest.raises(ValueError, match=r"pickled\.npz"):
        read_npz(tmp_path / "pickled.npz")
    with pytest.raises(ValueError, match="plain file name"):
        write_npz(tmp_path, made_scene(batch=1), ["../out"], ["t"])
    (tmp_path / "index.json").write_text('{"a": 1}')
    with pytest.raises(ValueError, match="JSON list"):
        read_index(tmp_path / "index.json")
    for outside in ("../secret.npz", "/etc/passwd", "a/b.npz", ".."):
        (tmp_path / "index.json").write_text(json.dumps(["good.npz", outside]))
        with pytest.raises(ValueError, match="no plain file name"):
            read_index(tmp_path / "index.json")
