-- The types of config.json that run, a file each.
--
-- arch    description under pipelines/models/
-- prompt  how the task becomes the prompt: {step = the processor's step that does it, template, state?};
--         nil: the type reads no text
-- resize  of pictures, a word of a robot's description
-- others  fields that only another model of the type has, and what is said of it
-- off     options of config.json that must not be set: what they change is not run
-- steps   names of steps of the processors that are known beside the common ones, and need nothing
-- options of steps that only this type has, by the step's name: what its config may say
-- inputs  features of config.json that are read beside pictures and observation.state
-- normal  true: pictures are normalised as the processor says
-- packs   the step that normalises in place of normalizer_processor, and unpacks, that in place of
--         unnormalizer_processor: adapt writes what they do
-- adds_state function(step): whether the step that unpacks adds the state to actions that are its changes
-- adapt   function(robot, before, after, all): changes the description that the common part made; those two steps, each
--         {at, config}, and all of the preprocessor by their names
-- rows    function(pictures, tokens, text): rows of a prompt; nil: pictures * tokens + text; without text
--         those of the model
return {
  act  = include "lerobot/act.lua",
  groot = include "lerobot/groot.lua",
  pi0  = include "lerobot/pi0.lua",
  pi05 = include "lerobot/pi05.lua",
  smolvla = include "lerobot/smolvla.lua",
}
