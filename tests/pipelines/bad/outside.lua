local x = include("../../etc/passwd")
return pipeline(x)
