-- The same mistake at the same place a thousand times is told once.
for i = 1, 1000 do
  pcall(function() return unknown_word end)
end
return pipeline { name = "arm", schema = 1 }
