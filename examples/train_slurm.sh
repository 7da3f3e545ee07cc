#!/bin/bash
# Train on several nodes of a SLURM cluster, and go on after a requeue:
#
#   sbatch --nodes 2 --partition main examples/train_slurm.sh base --data runs/samples --preset nuplan --out runs/base
#
# The words after the script are those of `radp train`. Each task is one process of the training; the batch must be
# divisible by their number. The job may be killed, preempted or requeued at any moment: it goes on from its newest
# checkpoint (--save-every steps), to the same weights as without the interruption if the number of tasks is the same.
#SBATCH --job-name=radp-train
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail

: "${RADP:=radp}" # how radp is started on the nodes
if [ -z "${MASTER_ADDR:-}" ]; then
    MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
fi
# another port after each requeue: the one before may not be free yet
MASTER_PORT=$((20000 + (SLURM_JOB_ID * 7 + ${SLURM_RESTART_COUNT:-0}) % 20000))
export MASTER_ADDR MASTER_PORT RADP
export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
# without GPUs: export ACCELERATE_USE_CPU=true before sbatch

# shellcheck disable=SC2016 # the variables are those of each task
srun --kill-on-bad-exit=1 bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS
    exec $RADP train "$@"
' radp "$@"
