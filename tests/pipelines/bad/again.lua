-- The same mistake at the same place a thousand times is told once.
for i = 1, 1000 do
  local x = unknown_word
end
return pipeline { name = "arm", schema = 1 }
