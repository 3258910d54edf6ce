-- A robot as NVIDIA's experiment_cfg/metadata.json describes it: cameras, statistics by part, and one of the published
-- data configurations, or the one that is given.
return include "experiment/robot.lua"
