-- LeRobot's words for the schedule of guided chunks (`rtc_config.prefix_attention_schedule`), and ours.
return {
  ZEROS = "zeros", ONES = "ones", LINEAR = "linear", EXP = "exp",
  zeros = "zeros", ones = "ones", linear = "linear", exp = "exp",
}
