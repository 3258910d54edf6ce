"""modeling_tectum.py - the LeRobot policy whose chunks a tectum server computes."""

import logging
import os
from collections import Counter, deque

import numpy as np
import torch
from lerobot.configs import PreTrainedConfig
from lerobot.policies.pretrained import PreTrainedPolicy

from .chunks import actions_of, left_over, picture_of
from .configuration_tectum import TectumConfig
from .protocol import Client

log = logging.getLogger(__name__)


def _key_of(path):
    if path is None:
        return None
    try:
        with open(os.path.expanduser(path)) as f:
            key = f.readline().strip()
    except OSError as e:
        raise ValueError(f"policy tectum: key_file: {e}") from e
    if not key:
        raise ValueError(f"policy tectum: key_file '{path}' has no key in its first line")
    return key


class TectumPolicy(PreTrainedPolicy):
    config_class = TectumConfig
    name = "tectum"

    def __init__(self, config, dataset_stats=None, **_):
        super().__init__(config)
        config.validate_features()
        self.sources = Counter()  # how many replies came from where: "fresh", or a substitute's word
        self._client = Client(config.url, _key_of(config.key_file), config.connect_timeout_s,
                              config.reply_timeout_s)
        self._episode = 0
        self._last = None
        self._action_queue = deque()
        # Before the robot moves, not at its first step: a wrong address or key is an error at start.
        log.info("tectum: %s, metadata %s", config.url, self._client.connect())

    @classmethod
    def from_pretrained(cls, pretrained_name_or_path, *, config=None, **options):
        """The folder holds the configuration alone: weights are the server's."""
        if config is None:
            known = ("force_download", "token", "cache_dir", "local_files_only", "revision")
            config = PreTrainedConfig.from_pretrained(
                pretrained_name_or_path, **{k: v for k, v in options.items() if k in known})
        return cls(config).eval()

    def get_optim_params(self):
        return {}

    def forward(self, batch):
        raise NotImplementedError("a tectum server does not train")

    def supports_rtc(self):
        return self.config.guided

    def reset(self):
        """A new episode: nothing of the old one is carried out, and the server begins a session."""
        self._action_queue.clear()
        self._last = None
        self._episode += 1

    @torch.no_grad()
    def select_action(self, batch, **kwargs):
        if not self._action_queue:
            chunk = self.predict_action_chunk(batch, **kwargs)[:, : self.config.n_action_steps]
            self._action_queue.extend(chunk.transpose(0, 1))
        return self._action_queue.popleft()

    @torch.no_grad()
    def predict_action_chunk(self, batch, *, inference_delay=None, prev_chunk_left_over=None,
                             execution_horizon=None, **_):
        """[1, rows, columns] in the robot's units. Raises rather than give actions that are not fresh.

        execution_horizon is the pipeline's (`guide`): what LeRobot says of it cuts the rows here.
        """
        request = self._observation(batch)
        if self.config.guided and prev_chunk_left_over is not None:
            self._guide(request, inference_delay, prev_chunk_left_over, execution_horizon)
        reply = self._client.infer(request)
        told = (reply.get("tectum") or {}).get("source", "fresh")
        self.sources[told] += 1
        if told != "fresh":
            log.warning("tectum: a substitute, source '%s' (%d of %d replies)", told,
                        sum(self.sources.values()) - self.sources["fresh"], sum(self.sources.values()))
        actions, _ = actions_of(reply, self.config.action_feature.shape[0],
                                "any" if self.config.on_substitute == "accept" else "fresh_only")
        self._last = actions[: self.config.chunk_size].astype(np.float32)
        return torch.from_numpy(self._last.copy())[None].to(self.config.device)

    def _observation(self, batch):
        request = {}
        for name, feature in self.config.input_features.items():
            if name not in batch:
                raise KeyError(f"policy tectum: the observation has no '{name}'")
            value = batch[name]
            if value.shape[0] != 1:
                raise ValueError(f"policy tectum: {value.shape[0]} observations in a batch; a server's "
                                 "client is one robot (eval: --eval.batch_size=1)")
            value = value[0].detach().cpu().numpy()
            visual = feature.type.name == "VISUAL"
            request[self.config.names.get(name, name)] = (
                picture_of(value, name) if visual else value.astype(np.float32))
        task = batch.get("task", "")
        task = task[0] if isinstance(task, (list, tuple)) and task else task
        if self.config.task_input:
            request[self.config.task_input] = task or self.config.default_task
        told = {"session_id": f"{self.config.session_id}/{self._episode}"}
        if self.config.deadline_ms is not None:
            told["deadline_ms"] = float(self.config.deadline_ms)
        if self.config.seed is not None:
            told["seed"] = self.config.seed
        return request | {"tectum": told}

    def _guide(self, request, delay, earlier, horizon):
        earlier = earlier.detach().cpu().numpy()
        rows = left_over(earlier[0] if earlier.ndim == 3 else earlier, self._last)[:horizon]
        if len(rows):  # no rows: the chunk is free, as the first one of an episode
            request["prev_chunk_left_over"] = rows.astype(np.float32)
            request["inference_delay"] = np.array([min(delay or 0, len(rows))], np.float32)
