-- Takes more memory than a pipeline file may.
local points = {}
for i = 1, 1000000 do
  points[i] = { i }
end
return pipeline { name = "x", points = points }
