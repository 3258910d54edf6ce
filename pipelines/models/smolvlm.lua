-- SmolVLM and SmolVLM2 (`smolvlm`, `idefics3`): a picture tower whose squares of patches become rows of a Llama
-- text, where the prompt has <image>, once a picture. A picture is one square frame: it is not split.
-- `given` = { config, generation, preprocessor, shapes, slots, size, arch }, as of decoder_family.lua.
local read <const> = include("common/configuration.lua")
local shared <const> = include("common/smolvlm_tower.lua")
local count <const> = read.count

local M <const> = "model."

local c = given.config
if c and c.model_type ~= "smolvlm" and c.model_type ~= "idefics3" or given.shapes and not c then return false end
if not c then
  if given.arch ~= "smolvlm" then return false end
  c = shared.sizes[given.size] or error("size must be full, small or tiny", 0)
  c.image_token_id = c.image_token_id or c.text_config.vocab_size - 1
  c.text_config.rope_theta = 100000.0
end

-- The side that the processor makes of a picture that it does not split, in patches too; without its file that of
-- the tower. Squares of `scale` x `scale` patches become a row: what does not fit them is told where it is said.
local function picture_side(vision, scale)
  local patch <const>, own <const> = count(vision, "patch_size", 32), count(vision, "image_size", 224)
  local most <const> = read.part(given.preprocessor or {}, "max_image_size")
  local side <const> = count(most, "longest_edge", own)
  local patches <const> = side // patch
  if scale <= 16 and patches >= 1 and patches % scale == 0 then return side end
  if scale <= 16 and own // patch >= 1 and own // patch % scale == 0 then
    read.refuse(most, "longest_edge", patches .. " patches of a side of " .. side .. " must be squares of " .. scale
                .. " x " .. scale)
  end
  read.refuse(c, "scale_factor", "squares of " .. scale .. " x " .. scale .. " must divide a side of " .. patches
              .. " patches, and be of 16 at most")
end

-- The text's tie is the top level's, whose default is not to.
local text <const>, vision <const> = {}, read.part(c, "vision_config")
for key, value in pairs(read.part(c, "text_config")) do text[key] = value end
read.word(text, "model_type", { "llama" }, "llama")
text.tie_word_embeddings = read.flag(c, "tie_word_embeddings", false)
local picture = c.image_token_id
if picture == nil then picture = 128257 end

local model <const> = include("common/llama_family.lua") {
  name = "smolvlm", config = text, prefix = M .. "text_model.",
}
model.slots = given.slots or { "image1", "image2", "image3", "image4", "image5", "image6", "image7", "image8" }
model.text.picture = read.token(c, "image_token_id", model.text.vocab, picture)
model.text.bos = -1 -- the chat's first token is one that the template spells
local scale <const> = count(c, "scale_factor", 2)
local side <const> = picture_side(vision, scale)
model.vision = {
  towers = { shared.tower(M, vision, side) },
  project = shared.project(M, scale, model.text.width),
}
return model
