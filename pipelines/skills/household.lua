-- Skills of a house robot in the style of ALFRED, as LoTA-Bench lists them: 214 texts. Each begins
-- with the space that it has behind "1." in the prompt.
local find <const> = {
  "baseball bat", "basketball", "bathtub", "bathtub basin", "bed", "blinds", "book", "boots", "bowl", "box",
  "bread", "butter knife", "cabinet", "candle", "cart", "cd", "cell phone", "chair", "cloth", "coffee machine",
  "coffee table", "counter top", "credit card", "cup", "curtains", "desk", "desk lamp", "dining table",
  "dish sponge", "drawer", "dresser", "floor lamp", "footstool", "fork", "fridge", "garbage can", "glass bottle",
  "hand towel", "hand towel holder", "house plant", "kettle", "key chain", "knife", "ladle", "laptop",
  "laundry hamper", "lettuce", "light switch", "microwave", "mirror", "mug", "newspaper", "painting", "pan",
  "paper towel roll", "pen", "pencil", "pepper shaker", "pillow", "plate", "plunger", "pot", "potato",
  "remote control", "safe", "salt shaker", "shelf", "side table", "sink", "sofa", "soap bar", "spatula", "spoon",
  "statue", "tomato",
}
local find_an <const> = {
  "alarm clock", "apple", "arm chair", "egg", "ottoman",
}
local take <const> = {
  "alarm clock", "apple", "baseball bat", "basketball", "book", "boots", "bowl", "box", "bread", "butter knife",
  "candle", "cd", "cell phone", "cloth", "credit card", "cup", "desk lamp", "dish sponge", "egg", "fork",
  "glass bottle", "hand towel", "kettle", "key chain", "knife", "ladle", "laptop", "lettuce", "mug", "newspaper",
  "pan", "paper towel roll", "pen", "pencil", "pepper shaker", "pillow", "plate", "plunger", "pot", "potato",
  "remote control", "salt shaker", "soap bar", "spatula", "spoon", "statue", "teddy bear", "tennis racket",
  "tissue box", "toilet paper", "tomato", "vase", "watch",
}
local open <const> = { "box", "cabinet", "drawer", "fridge", "laptop", "microwave", "safe" }
local slice <const> = { "apple", "bread", "lettuce", "potato", "tomato" }
local switch <const> = { "desk lamp", "faucet", "floor lamp", "microwave" }

local skills = { " done" }
local function add(before, names)
  for _, name in ipairs(names) do skills[#skills + 1] = before .. name end
end
add(" find a ", find)
add(" find an ", find_an)
add(" pick up the ", take)
add(" put down the ", take)
add(" open the ", open)
add(" close the ", open)
add(" slice the ", slice)
add(" turn on the ", switch)
add(" turn off the ", switch)
return skills
