-- Prompt templates, by the names that robots and prefills use (graph/transform/template.h).
--
-- A call is encoded on its own. {text} is the instruction, {state} the bins of the normalised state
-- joined by one space. Of several texts {text} is all that are not empty, a line each, {text1} to
-- {text8} is one of them, in the order in which the prefill reads them.
-- clean: strip white space at both ends, then '_' and newline become spaces.
-- literal: special tokens that the instruction spells out stay text.
-- listed: the instruction as Python prints a list of it.
-- lower: lower case. words: without punctuation.
-- ending_piece: the id of this piece comes last, and is added if it is not there.
local prompts <const> = {
  -- The newline is encoded apart, so that it never joins the instruction's last token.
  plain      = { clean = true, calls = { { text = "{text}", bos = true }, { text = "\n" } } },
  with_state = { clean = true, calls = { { text = "Task: {text}, State: {state};\nAction: ", bos = true } } },
  -- A text that is a whole prompt.
  bare       = { calls = { { text = "{text}" } } },
  -- LeRobot's: not cleaned, one text, a newline at the end if there is none.
  as_it_is   = { ending = "\n", calls = { { text = "{text}", bos = true } } },
  -- The same without a first token.
  task       = { ending = "\n", calls = { { text = "{text}" } } },
  -- OpenVLA's: training put the empty piece between the colon and the action.
  openvla    = { lower = true, ending_piece = "▁",
                 calls = { { text = "In: What action should the robot take to {text}?\nOut:", bos = true } } },
  -- A task and the number of its first step, as LoTA-Bench asks for it; skills continue it.
  skills     = { calls = {
    { text = "Robot: Hi there, I'm a robot operating in a house.\n"
             .. "Robot: You can ask me to do various tasks and I'll tell you the sequence of actions I would do to "
             .. "accomplish your task.\n\nHuman: " },
    { text = "{text}", literal = true },
    { text = "\nRobot: 1." } } },
  -- PaliGemma's request for a caption, which no instruction is part of.
  caption    = { calls = { { text = "caption en", bos = true }, { text = "\n" } } },
  -- One turn of ChatML with the default system text of Qwen2.5.
  chatml     = { calls = {
    { text = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant."
             .. "<|im_end|>\n<|im_start|>" },
    { text = "user\n{text}", literal = true },
    { text = "<|im_end|>\n<|im_start|>assistant\n" } } },
  -- A task and what was said last, of two texts that a prefill reads: what is to be said next.
  chatml_next = { calls = {
    { text = "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant."
             .. "<|im_end|>\n<|im_start|>" },
    { text = "user\nTask: {text1}\nLast step: {text2}\nWhat is the next step?", literal = true },
    { text = "<|im_end|>\n<|im_start|>assistant\n" } } },
  -- The same turn with the system text of SmolLM2-Instruct; of Qwen3, which has none and is told not to think
  -- aloud; of Llama 3 and Gemma, whose own first token comes first.
  smollm2    = { calls = {
    { text = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
             .. "<|im_end|>\n<|im_start|>" },
    { text = "user\n{text}", literal = true },
    { text = "<|im_end|>\n<|im_start|>assistant\n" } } },
  qwen3      = { calls = {
    { text = "<|im_start|>" },
    { text = "user\n{text}", literal = true },
    { text = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n" } } },
  llama3     = { calls = {
    { text = "<|start_header_id|>user<|end_header_id|>\n\n", bos = true },
    { text = "{text}", literal = true },
    { text = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n" } } },
  gemma      = { calls = {
    { text = "<start_of_turn>user\n", bos = true },
    { text = "{text}", literal = true },
    { text = "<end_of_turn>\n<start_of_turn>model\n" } } },
  -- What the bundled planner was trained on (pipelines/checkpoints/planner/train): facts, each with its
  -- own end of line, and a question with none.
  facts      = { calls = {
    { text = "robot memory:\n" },
    { text = "{memory}" },
    { text = "{text}", literal = true } } },
  -- The same memory and a goal, asked what comes next and what was done (tools/table/goals.py).
  table_next = { calls = {
    { text = "robot memory:\n" },
    { text = "{memory}" },
    { text = "{text}", literal = true },
    { text = "\nnext:" } } },
  table_did  = { calls = {
    { text = "robot memory:\n" },
    { text = "{memory}" },
    { text = "{text}", literal = true },
    { text = "\ndid:" } } },
  -- LoTA-Bench's planner prompt with the rules and the list of objects that KEEP adds; segments of the
  -- memory stand in the middle, each with its own end of line.
  planner_memory = { calls = {
    { text = "Robot: Hi there, I'm a robot operating in a home.\n"
             .. "Robot: You can ask me to do various tasks and I'll tell you the sequence of actions I would do to "
             .. "accomplish your task.\nBefore put down something, I must go to the place. I can only hold one thing "
             .. "at a time. When I need to slice something, I must hold a knife.\n"
             .. "Here is a description of different objects in the environment:\n" },
    { text = "{memory}" },
    { text = "Human: {text}\nRobot: 1.", literal = true } } },
}

-- Eagle's chat with n pictures, whose rows stand where <IMG_CONTEXT> does. The instruction is a list of one text, as
-- GR00T N1.5 was run; eagle_plain: the text alone, as it was trained.
for n = 1, 8 do
  local pictures = ""
  for i = 1, n do pictures = pictures .. "<image " .. i .. "><img><IMG_CONTEXT></img>" end
  for name, listed in pairs { eagle = true, eagle_plain = false } do
    prompts[name .. n] = { listed = listed, calls = {
      { text = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n" .. pictures },
      { text = "{text}", literal = true },
      { text = "<|im_end|>\n<|im_start|>assistant\n" } } }
  end
end

-- The same chat with the pictures behind the text and no answer begun, as GR00T N1.6 has it: eagle_words, in lower
-- case without punctuation; eagle_behind, the text as it is. What follows the text may share a token with its end.
local others = ""
for n = 1, 8 do
  if n > 1 then others = others .. "<image " .. n .. "><img><IMG_CONTEXT></img>" end
  for name, words in pairs { eagle_words = true, eagle_behind = false } do
    prompts[name .. n] = { lower = words, words = words, calls = {
      { text = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>" },
      { text = "user\n{text}<image 1>", literal = true },
      { text = "<img><IMG_CONTEXT></img>" .. others .. "<|im_end|>\n" } } }
  end
end

-- Qwen3-VL's chat with n pictures in front of the text and no answer begun, as GR00T N1.7 has it: qwen3_vl_words, in
-- lower case without punctuation; qwen3_vl, the text as it is.
local looks = ""
for n = 1, 8 do
  looks = looks .. "<|vision_start|><|image_pad|><|vision_end|>"
  for name, words in pairs { qwen3_vl_words = true, qwen3_vl = false } do
    prompts[name .. n] = { lower = words, words = words, calls = {
      { text = "<|im_start|>user\n" .. looks },
      { text = "{text}", literal = true },
      { text = "<|im_end|>\n" } } }
  end
end

-- One turn of SmolVLM2, without a picture and with n: each stands where its <image> does. The space behind "User:" is
-- only where the text comes first.
local pictures = ""
for n = 0, 8 do
  prompts["smolvlm" .. (n > 0 and n or "")] = { calls = {
    { text = "<|im_start|>User:" .. (n > 0 and pictures or " ") },
    { text = "{text}", literal = true },
    { text = "<end_of_utterance>\nAssistant:" } } }
  pictures = pictures .. "<fake_token_around_image><global-img><image><fake_token_around_image>"
end

return prompts
