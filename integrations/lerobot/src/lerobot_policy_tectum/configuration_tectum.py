"""configuration_tectum.py - what LeRobot's command line says of a policy that a tectum server computes."""

from dataclasses import dataclass, field

from lerobot.configs import PreTrainedConfig


@PreTrainedConfig.register_subclass("tectum")
@dataclass
class TectumConfig(PreTrainedConfig):
    """Every field is an option of LeRobot's programs: --policy.url=ws://ROBOT:8000"""

    url: str = "ws://127.0.0.1:8000"
    # The file of `tectum serve --key`. The key itself is no field: LeRobot saves and prints its fields.
    key_file: str | None = None
    # LeRobot's names to the pipeline's; a name that is not here is sent as it is.
    names: dict[str, str] = field(default_factory=dict)
    task_input: str = "prompt"
    default_task: str = ""
    chunk_size: int = 50  # at most so many rows of a reply are used
    n_action_steps: int = 50  # of those, carried out before the next request; RTC decides by itself
    # What the pipeline of an RTC robot has as inputs; a server ignores names that it does not know.
    guided: bool = False
    deadline_ms: float | None = None
    session_id: str = "lerobot"
    seed: int | None = None  # the same noise for every chunk: for tests, not for robots
    on_substitute: str = "raise"  # or "accept": carry out what the pipeline's on_miss says
    connect_timeout_s: float = 10.0
    reply_timeout_s: float = 10.0
    push_to_hub: bool = False

    def __post_init__(self):
        super().__post_init__()
        wrong = []
        if not self.url.startswith(("ws://", "wss://")):
            wrong.append(f"url is '{self.url}'; it must begin with ws:// or wss://")
        if self.on_substitute not in ("raise", "accept"):
            wrong.append(f"on_substitute is '{self.on_substitute}'; it must be raise or accept")
        if not 1 <= self.n_action_steps <= self.chunk_size:
            wrong.append(f"n_action_steps is {self.n_action_steps}; it must be 1 to chunk_size, "
                         f"{self.chunk_size}")
        if self.deadline_ms is not None and not self.deadline_ms > 0:
            wrong.append(f"deadline_ms is {self.deadline_ms:g}; it must be above 0")
        if not (self.connect_timeout_s > 0 and self.reply_timeout_s > 0):
            wrong.append("connect_timeout_s and reply_timeout_s must be above 0")
        if len(self.session_id.encode()) > 180:
            wrong.append("session_id is longer than 180 bytes")
        if len(set(self.names.values())) != len(self.names):
            wrong.append("names has two features for one input of the pipeline")
        if wrong:
            raise ValueError("policy tectum: " + "; ".join(wrong))

    @property
    def observation_delta_indices(self):
        return None

    @property
    def action_delta_indices(self):
        return list(range(self.chunk_size))

    @property
    def reward_delta_indices(self):
        return None

    def get_optimizer_preset(self):
        raise NotImplementedError("a tectum server does not train")

    def get_scheduler_preset(self):
        return None

    def validate_features(self):
        """One sentence for each feature that cannot be sent. The server checks names and sizes."""
        wrong = []
        if not self.input_features:
            wrong.append("input_features is empty: the folder's config.json lists what is sent")
        if self.action_feature is None:
            wrong.append("output_features has no 'action'")
        elif len(self.action_feature.shape) != 1:
            wrong.append(f"'action' has shape {tuple(self.action_feature.shape)}; it must be a row")
        known = set(self.input_features or {})
        for name in self.names:
            if known and name not in known:
                wrong.append(f"names has '{name}', which is no input feature ({', '.join(sorted(known))})")
        if wrong:
            raise ValueError("policy tectum: " + "; ".join(wrong))
