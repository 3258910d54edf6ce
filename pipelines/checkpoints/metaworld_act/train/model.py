"""LeRobot's own ACT with a narrower ResNet: policy(config) to train, save(...) as `lerobot-train` would.

torchvision's ResNet-18 begins with 64 channels, whatever its caller wants; here it begins with WIDTH. LeRobot freezes its
batch norms because its ResNet comes trained. This one comes from nothing, so its norms learn and are frozen when they are saved:
the tensors are the same.
"""
import torch
import torchvision
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.act.processor_act import make_act_pre_post_processors
from torchvision.models.resnet import BasicBlock, ResNet

WIDTH = 16
CAMERAS = ("corner", "wrist")


class Narrow(ResNet):
    """ResNet-18 whose layers have WIDTH / 64 of the channels."""

    def __setattr__(self, name, value):
        first = name == "inplanes" and name not in self.__dict__
        super().__setattr__(name, WIDTH if first else value)

    def _make_layer(self, block, planes, *rest, **named):
        return super()._make_layer(block, planes * WIDTH // 64, *rest, **named)


def build(config, learning):
    """The policy; with `learning` norms that learn."""
    def resnet18(replace_stride_with_dilation, weights, norm_layer):
        net = Narrow(BasicBlock, [2, 2, 2, 2], replace_stride_with_dilation=replace_stride_with_dilation,
                     norm_layer=torch.nn.BatchNorm2d if learning else norm_layer)
        net.fc = torch.nn.Linear(WIDTH * 8, 1)
        return net
    usual, torchvision.models.resnet18 = torchvision.models.resnet18, resnet18
    try:
        return ACTPolicy(config)
    finally:
        torchvision.models.resnet18 = usual


def config(size, state, action, chunk, execute):
    inputs = {f"observation.images.{name}": PolicyFeature(FeatureType.VISUAL, (3, size, size)) for name in CAMERAS}
    inputs["observation.state"] = PolicyFeature(FeatureType.STATE, (state,))
    return ACTConfig(input_features=inputs, output_features={"action": PolicyFeature(FeatureType.ACTION, (action,))},
                     device="cpu", push_to_hub=False, pretrained_backbone_weights=None, chunk_size=chunk, n_action_steps=execute,
                     dim_model=128, n_heads=4, dim_feedforward=256, n_encoder_layers=3, n_decoder_layers=1,
                     n_vae_encoder_layers=1, latent_dim=16, dropout=0.0)


def together(policy):
    """One pass of the backbone for all cameras, so that its norms see them together, as they are used."""
    backbone, maps = policy.model.backbone, []
    usual = backbone.forward
    backbone.forward = lambda picture: {"feature_map": maps.pop(0)}

    def look(pictures):
        maps.extend(usual(torch.cat(pictures))["feature_map"].chunk(len(pictures)))
    return look


def save(folder, policy, stats):
    """What `lerobot-train` leaves in a folder: the policy with frozen norms and its two processors."""
    frozen = build(policy.config, False)
    weights = {k: v for k, v in policy.state_dict().items() if not k.endswith("num_batches_tracked")}
    frozen.load_state_dict(weights)
    frozen.save_pretrained(folder)
    for processor in make_act_pre_post_processors(policy.config, stats):
        processor.save_pretrained(folder)
