# SPDX-License-Identifier: Apache-2.0
"""Communication hooks of torch's DistributedDataParallel."""


def bf16_hook(state, bucket):  # no annotations: DDP compares them with classes that would have to be imported here
    """Averages a bucket of gradients with half of the bytes: each rank's are rounded to bfloat16, and added in fp32.

        model = torch.nn.parallel.DistributedDataParallel(model)
        model.register_comm_hook(None, weft.bf16_hook)      # or the group that the model has been given

    Inside a host the sum is rounded to bfloat16 once, at its end, whatever the number of ranks; between hosts once more at each
    step of the algorithm that adds. It is divided by the number of ranks in the gradients' own type. All ranks get the same bits.
    """
    import torch
    import torch.distributed as dist

    group = state if state is not None else dist.group.WORLD
    gradients = bucket.buffer()
    sums = gradients.to(torch.bfloat16)

    def average(done):
        return gradients.copy_(done.value()[0]).div_(dist.get_world_size(group))

    return dist.all_reduce(sums, group=group, async_op=True).get_future().then(average)
