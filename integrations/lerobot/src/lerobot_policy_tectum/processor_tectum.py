"""processor_tectum.py - LeRobot's processors around the policy: names, the batch dimension, the device.

The server normalises: an observation goes as the robot has it, actions come in the robot's units.
"""

from lerobot.processor import (
    AddBatchDimensionProcessorStep,
    DeviceProcessorStep,
    PolicyProcessorPipeline,
    RenameObservationsProcessorStep,
)
from lerobot.processor.converters import policy_action_to_transition, transition_to_policy_action
from lerobot.utils.constants import POLICY_POSTPROCESSOR_DEFAULT_NAME, POLICY_PREPROCESSOR_DEFAULT_NAME


def make_tectum_pre_post_processors(config, dataset_stats=None):
    # LeRobot's programs fill in the first and the last step (--rename_map, --device): both must be there.
    steps = [RenameObservationsProcessorStep(rename_map={}), AddBatchDimensionProcessorStep(),
             DeviceProcessorStep(device=config.device)]
    before = PolicyProcessorPipeline(steps=steps, name=POLICY_PREPROCESSOR_DEFAULT_NAME)
    after = PolicyProcessorPipeline(steps=[], name=POLICY_POSTPROCESSOR_DEFAULT_NAME,
                                    to_transition=policy_action_to_transition,
                                    to_output=transition_to_policy_action)
    return before, after
