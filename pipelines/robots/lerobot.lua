-- A robot as a LeRobot checkpoint describes it: its features, processors and statistics.
--
-- It is read with the checkpoint: given.config, given.preprocessor, given.postprocessor. Request keys are
-- LeRobot's: observation.images.<name>, observation.state, task. `tectum init CHECKPOINT` writes what comes
-- out as a file to edit.
return include "lerobot/robot.lua"
