-- The keys of a table as a list of names, for messages that tell what is known.
return function(t)
  local list = ""
  for name in pairs(t) do list = list .. (list == "" and "" or ", ") .. tostring(name) end
  return list
end
