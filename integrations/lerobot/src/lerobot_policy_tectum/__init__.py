"""lerobot_policy_tectum - LeRobot finds the policy "tectum" by importing this package."""

try:
    import lerobot  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "lerobot":
        raise
    # Without LeRobot `protocol` and `chunks` alone are of use: programs and tests import them by name.
else:
    from .configuration_tectum import TectumConfig
    from .modeling_tectum import TectumPolicy
    from .processor_tectum import make_tectum_pre_post_processors

    __all__ = ["TectumConfig", "TectumPolicy", "make_tectum_pre_post_processors"]
