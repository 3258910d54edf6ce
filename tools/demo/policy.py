"""Who answers an observation: the PyTorch model in this process, or any openpi server."""
import pathlib
import sys

import numpy as np

TRAIN = pathlib.Path(__file__).resolve().parents[2] / "pipelines/checkpoints/metaworld/train"
HORIZON, ACTION_DIM = 16, 4


def noise(seed, step):
    """The noise that a chunk starts from, the same for every policy: f32 [horizon, action_dim]."""
    return np.random.default_rng([seed, step]).standard_normal((HORIZON, ACTION_DIM), dtype=np.float32)


class Local:
    """The model in PyTorch, behind the same call as a server. PyTorch is imported here only: a server needs none of it."""

    def __init__(self, folder, dtype=None, steps=10):
        sys.path.append(str(TRAIN))
        import torch
        import checkpoint
        torch.set_num_threads(1)
        self.dtype, self.steps, self.prompts = dtype or torch.float32, steps, {}
        self.model, self.sp, self.states, self.actions = checkpoint.load(folder, self.dtype)

    def prompt(self, instruction, state):
        import tokenizer
        if instruction not in self.prompts:
            self.prompts[instruction] = tokenizer.Prompts(self.sp, [instruction])
        return self.prompts[instruction].ids(0, state)

    def model_inputs(self, obs):
        """-> normalised state, ids of the prompt, given actions in model space or None"""
        state = self.states.normalise(obs["observation/state"].astype(np.float64))
        given = obs.get("prev_actions")
        given = None if given is None or not len(given) else self.actions.normalise(np.asarray(given, np.float64))
        return state, self.prompt(obs["prompt"], state), given

    @staticmethod
    def words(obs):
        return 12 if "text" in obs["tectum"].get("tasks", ["text"]) else 0

    def infer(self, obs):
        import tokenizer
        import torch
        _, ids, given = self.model_inputs(obs)
        images = torch.from_numpy(np.stack([obs["observation/image"], obs["observation/wrist_image"]]))[None]
        as_model = lambda x: torch.from_numpy(x).to(self.dtype)[None]
        x, text = self.model.infer(images, torch.tensor([ids]), as_model(obs["tectum"]["noise"]),
                                   None if given is None else as_model(given), self.steps, self.words(obs))
        model_actions = x[0].float().numpy()
        return {"actions": self.actions.restore(model_actions), "model_actions": x[0].double().numpy(), "text_ids": text,
                "tectum": {"text": self.sp.decode([t for t in text if t != tokenizer.EOS])}}


class Server:
    """openpi's own client, unmodified."""

    def __init__(self, host, port):
        from openpi_client.websocket_client_policy import WebsocketClientPolicy
        self.client = WebsocketClientPolicy(host, port)
        self.metadata = self.client.get_server_metadata()

    def infer(self, obs):
        return self.client.infer(obs)
