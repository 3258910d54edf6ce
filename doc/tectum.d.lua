---@meta
-- Pipeline files for editors (LuaLS). Generated: do not edit.

---@class tectum.call

kv = {}

---The description itself.
---@class tectum.robot
---@field name string the robot's name in messages
---@field variant? string the variant that holds where the pipeline names none
---@field variants? table<string, tectum.robot> by name, fields that replace the common ones; inside `state`, `actions`, `norm` and `prompt` field by field
---@field cameras? tectum.robot_camera[] the model's camera slots, in the model's order
---@field resize? "openpi_pil"|"lerobot_torch"|"lerobot_corner"|"none"|"resize-naive"|"letterbox"|"resize-crop"|"crop-95"|"letterbox-area"|"resize-middle"|"letterbox-middle"|"checkpoint" how a picture of another size than the model's is resized; default openpi_pil
---@field fill? integer[] three bytes, the colour of a letterbox, which needs it
---@field edge? integer side in pixels of the square that `letterbox-area`, `letterbox-middle` and `resize-middle` cut, which need it
---@field middle? number the part of that side that stays: above 0, at most 1
---@field ignore? string[] keys of a request that are not looked at
---@field unknown_cameras? "error"|"ignore" what a picture under a key that is in no slot is; default error
---@field state? tectum.robot_state the state vector; without it the robot has none
---@field actions tectum.robot_actions what becomes of the model's actions
---@field norm tectum.robot_norm which statistics normalise the state, and actions back
---@field prompt? tectum.robot_prompt how the instruction becomes the model's prompt
---@field rate_hz? number the control rate, in Hz; it must fit the pipeline's period
---@field execute? integer rows that are executed before the next observation; all without it
---@field metadata? table what a server tells clients that connect; at most 32 KiB as JSON

---A camera slot of the model.
---@class tectum.robot_camera
---@field slot string the model's name for it, such as `base_0_rgb`
---@field input? string the picture's key in a request; without it the slot is masked
---@field missing? "error"|"mask" what a request without this picture is; default error
---@field rotate180? boolean turn the picture before anything else; default false
---@field layout? "auto"|"hwc"|"chw" order of the picture's dimensions; `auto`: channels first where the first one is 3; default auto

---The state vector: its parts one after the other, through the steps.
---@class tectum.robot_state
---@field inputs? tectum.robot_part[] the vectors that it is made of
---@field ops? table[] steps before it is normalised
---@field normalised? table[] steps behind that, which keep the number of entries

---A vector of the state.
---@class tectum.robot_part
---@field input string its key in a request
---@field size integer how many entries it has; a single number will do for 1

---From the model's actions to commands.
---@class tectum.robot_actions
---@field size integer columns of a command
---@field inputs? integer columns of the model's actions that are used: the first ones; default size
---@field decode? table[] steps before un-normalisation, which keep the number of columns
---@field ops? table[] steps after un-normalisation
---@field max_rows? integer most rows of a chunk that reach the robot; all without it
---@field outputs? tectum.robot_output[] names of the columns, one part after the other, which together are a command
---@field limits? tectum.robot_limits|false how far commands may go; without them the statistics bound them, with `false` nothing does
---@field relative? boolean commands are changes or speeds: repeated, the robot moves on; default false
---@field ensemble? number each action is the mean of what all chunks say of it, chunk i after the oldest weighted by exp(-ensemble i)

---Columns of a command that have a name.
---@class tectum.robot_output
---@field name string the part's name
---@field size integer how many columns it has

---How far commands may go, in the robot's units.
---@class tectum.robot_limits
---@field min? number|(number|false)[] lowest value, of all columns or of each
---@field max? number|(number|false)[] highest value
---@field max_step? number|(number|false)[] largest change between two commands
---@field on? "clip"|"hold"|"stop" what a chunk beyond them does; default clip

---Statistics of the checkpoint.
---@class tectum.robot_norm
---@field mode "quantile"|"mean_std"|"min_max"|"none"|"checkpoint" the formula; `checkpoint`: a LeRobot checkpoint's own
---@field asset? string folder of the statistics in `assets/`, or key of a dataset; without it the only one
---@field eps? number added to the widths of statistics by dataset; 0 to below 1; default 0
---@field missing? "error"|"pass" what a feature without statistics is; `pass`, as it is, with `checkpoint` only; default error
---@field precision? "f32"|"f64" of the formulas; `f64` with `checkpoint` only; default f32

---The instruction and what stands beside it.
---@class tectum.robot_prompt
---@field input? string the instruction's key in a request; default prompt
---@field template? string a prompt template of the model; without it the model's own
---@field default? string the instruction of a request without one; without it that is refused
---@field state? boolean the state's bins are given to the template; default false
---@field state_pad_to? integer the state is padded with zeros to so many bins
---@field max_tokens? integer most tokens of a prompt; the model's own without it
---@field truncate? boolean cut a longer prompt; otherwise it is refused; default false
---@field keep? "first"|"last" which tokens stay of a prompt that is cut; default first

---The whole file: `return pipeline { ... }`.
---@class tectum.pipeline
---@field name string name in reports and traces
---@field schema integer version of this language: 1
---@field seed? integer keys all randomness that no input gives; default 0
---@field models? (tectum.model)[] the models, a list or by name: `models = { arm = model { }, planner = model { } }`; `model = model { }` is the form for one
---@field model? tectum.model the form for one model
---@field robot? string|tectum.robot the robot's description: a path such as "robots/libero.lua", or a table
---@field robots? table<string, string|tectum.robot> several robots by name, `{ left = "robots/libero.lua", right = ... }`: inputs are `left/NAME`; actions are those of the robot whose inputs the prefill reads
---@field variant? string variant of the robots' descriptions; without it the description's own
---@field frame tectum.frame the control frame
---@field inputs? (tectum.image|tectum.tensor|tectum.text|tectum.segments)[] what comes in every frame
---@field resources? (tectum.kv_frame|tectum.kv_requests|tectum.kv_ring|tectum.kv_segments|tectum.buffer)[] key/value caches and buffers
---@field nodes? (tectum.prefill|tectum.action|tectum.decode|tectum.score|tectum.memory_load|tectum.remember)[] what is computed
---@field partitions? (tectum.sm)[] shares of the device
---@field capture? tectum.capture the decision lattice: the points a policy may pick; default {}
---@field memory? tectum.memory memory budgets; default {}
---@field policy? tectum.use who plans the frames; default {}
---@field guard? tectum.guard bounds of a policy written in Lua; default {}

---@param t tectum.pipeline
---@return tectum.pipeline
function pipeline(t) end

---A model and where its weights are.
---@class tectum.model
---@field name? string what nodes call it; needed when there are several; default main
---@field arch string model description: models/<arch>.lua
---@field weights? string checkpoint folder, of the current folder or of the root; `--weights` overrides it
---@field adapter? string folder of a LoRA adapter (PEFT), found as weights are, merged into them; `--adapter` overrides it
---@field embodiment? string which kind of robot acts, for a model that has several: a tag that its description knows
---@field dtype? "bf16"|"f32" what weights and caches are rounded to; default bf16
---@field quantize? "none"|"int8"|"int4" the layers' matrices, rounded when they are loaded: int8, a scale for each output; int4, one for each 64 inputs of it; default none
---@field quantize_head? "none"|"int8" the head, which makes logits: int8, rounded with a scale for each token; rows of the embedding are read as `dtype` says; default none
---@field round? "none"|"bf16x2"|"mixed"|"bf16"|"int8" what products with bf16 weights may read of activations: all, two bf16 terms, one or two by product, or one; int8: those with 8-bit weights read 8 bits of them; default none
---@field where? string devices as for `--device`, the first that is here: "cuda:1,cpu"; without it the run's

---@param t tectum.model
---@return tectum.model
function model(t) end

---The control frame: how often, and by whose clock.
---@class tectum.frame
---@field period_ms number milliseconds from tick to tick
---@field clock? "internal"|"external"|"on_request" who ticks: a timer, the arrival of an observation, or a request; a label: `run` and `serve` decide; default internal
---@field overrun? "skip_next" what a frame that runs past the next tick does: that tick opens no frame; default skip_next
---@field sessions? integer robots of one kind that it serves, each with observations, requests and texts of its own; a kv.requests has its slots for each of them; default 1
---@field gather_ms? number milliseconds that a frame waits for observations of other sessions behind the first; default 0

---@param t tectum.frame
---@return tectum.frame
function frame(t) end

---A camera picture, height x width x 3.
---@class tectum.image
---@field name string key in a request
---@field h integer height in pixels that the model sees (W110); a picture of any size is made so
---@field w integer width in pixels that the model sees (W110)
---@field dtype? "u8"|"f32" what a request brings, a label: u8, 0 to 255, and f32, -1 to 1, are both taken; default u8
---@field slot? string camera of the model; without it the robot's description says, else the order of `reads`
---@field optional? boolean may be absent from a request: it is then masked; of a camera that the robot needs, not (W110); default false

---@param t tectum.image
---@return tectum.image
function image(t) end

---Numbers, such as the joint positions.
---@class tectum.tensor
---@field name string key in a request
---@field shape integer[] sizes, outermost first, at most 4
---@field dtype? "f32"|"f64"|"i32"|"i64"|"u8" element type; default f32

---@param t tectum.tensor
---@return tectum.tensor
function tensor(t) end

---A prompt or an instruction.
---@class tectum.text
---@field name string key in a request
---@field max_tokens integer longest prompt after the template, in tokens
---@field default? string used until the first one arrives; without it a request must bring one

---@param t tectum.text
---@return tectum.text
function text(t) end

---Texts looked up in a memory, each a segment of its own.
---@class tectum.segments
---@field name string key in a request
---@field max_segments integer most segments in a frame
---@field tokens_each integer most tokens of a segment

---@param t tectum.segments
---@return tectum.segments
function segments(t) end

---Keys and values of one frame's prefix.
---@class tectum.kv_frame
---@field name string what nodes call it
---@field tokens integer longest prefix

---@param t tectum.kv_frame
---@return tectum.kv_frame
function kv.frame(t) end

---Keys and values of requests that live longer than a frame.
---@class tectum.kv_requests
---@field name string what nodes call it
---@field tokens integer longest sequence, prefix included
---@field slots integer most requests alive at a time
---@field share_prefix? string|tectum.call the kv.frame or kv.ring whose newest prefix a request forks, copy on write

---@param t tectum.kv_requests
---@return tectum.kv_requests
function kv.requests(t) end

---Keys and values of requests one step apart.
---@class tectum.kv_ring
---@field name string what nodes call it
---@field tokens integer longest sequence of a stage
---@field stages integer requests in flight: tokens of an action
---@field shift? "rotate"|"device_copy" how stages move on: by a table, or by copying; default rotate
---@field pack? "packed"|"gather" keys are read where they are, or gathered first; default packed
---@field on_change? "flush"|"keep" a new instruction drops what is in flight, or lets it finish; default flush

---@param t tectum.kv_ring
---@return tectum.kv_ring
function kv.ring(t) end

---A memory of keys and values in several places.
---@class tectum.kv_segments
---@field name string what nodes call it
---@field tokens integer tokens of all segments in use together
---@field stable_steps? integer a segment unchanged for so many steps counts as static; default 10
---@field threshold? number least cosine between a segment and a group that it joins; above 1: every segment alone; default 0.6
---@field store? string the file that remembers; without it memory ends with the program
---@field remote? string a server that shares keys and values: redis://host:port, its nodes with commas between them, or unix:/path
---@field remote_ms? number a prompt waits so long in all for the server, then it is computed and the server rests; default 500
---@field encoder? string directory of a sentence encoder, found as weights are; without it texts are alike by their words
---@field tiers? tectum.tiers bytes of each place; default {}

---@param t tectum.kv_segments
---@return tectum.kv_segments
function kv.segments(t) end

---Bytes of each place of a memory; written as a plain table.
---@class tectum.tiers
---@field gpu? string|integer on the device, where it does not read host memory (W110); 0: none; default 0
---@field host? string|integer in host memory; 0: twice what the segments of a prompt take, of each robot; default 0
---@field disk? string|integer in the files of `store`; 0: as many as the disk has; default 0

---@param t tectum.tiers
---@return tectum.tiers
function tiers(t) end

---What a node hands out: a chunk of actions.
---@class tectum.buffer
---@field name string what nodes call it
---@field shape integer[] sizes: horizon, then action width
---@field dtype? "f32"|"f64"|"i32"|"i64"|"u8" element type; default f32

---@param t tectum.buffer
---@return tectum.buffer
function buffer(t) end

---Runs inputs through the model and keeps their keys and values.
---@class tectum.prefill
---@field name string name in traces and for policies
---@field model? string|tectum.call which model; needed when there are several
---@field reads string[] inputs, pictures in the order of the model's cameras; texts may be streams of nodes, `prev` or not
---@field writes string|tectum.call the kv resource that is filled
---@field template? string prompt template of the model description
---@field spawn? tectum.call `every(n)` frames or `on_change()` of its texts; without it in every frame, or for each request that waits for it
---@field after? string|tectum.call a node that runs before it; of a node whose stream it reads: its text of the frame is made first
---@field partition? string|tectum.call share of the device
---@field when? tectum.call `policy()`: a decision may skip it

---@param t tectum.prefill
---@return tectum.prefill
function prefill(t) end

---Denoises a chunk of actions from a prefix.
---@class tectum.action
---@field name string name in traces and for policies
---@field model? string|tectum.call which model; needed when there are several
---@field kv string|tectum.call the prefix, a kv.frame; `prev "obs"` is that of the previous frame; or a kv.requests: the keys of its newest finished text
---@field or_kv? string|tectum.call of a kv.requests: the prefix, a kv.frame, that it takes until a text is finished
---@field steps? integer denoising steps; without it the model's
---@field prefix? string|tectum.call a tensor { rows, columns }: the first actions, where the robot has begun them already
---@field guide? tectum.guide pulls the chunk to the one before it, which is executed meanwhile (real-time chunking)
---@field spawn? tectum.call `every(n)` observations, or `on_change("value")` of its prefix: at those between the rest of its newest chunk leaves; without it at each
---@field out? string|tectum.call the buffer of the chunk
---@field deadline? tectum.hard|tectum.soft by when the chunk is needed
---@field after? string|tectum.call a node that runs before it; of a node that makes texts: its text of the frame is made first
---@field partition? string|tectum.call share of the device
---@field when? tectum.call `policy()`: a decision may leave it out of a frame; the robot is given what `on_miss` says

---@param t tectum.action
---@return tectum.action
function action(t) end

---Produces tokens one after the other.
---@class tectum.decode
---@field name string name in traces and for policies
---@field model? string|tectum.call which model; needed when there are several
---@field kv string|tectum.call kv.requests; kv.frame, for one text at a time; or `prev` and a kv.ring
---@field max_tokens integer longest answer
---@field spawn? tectum.call who starts requests: `every(n)` observations, `on_change()` of the instruction, `on_change("value")` of its prefix or what that is made of, or `on_request()`; on a kv.frame without it whenever that is new
---@field supersede? boolean a new request ends the older ones of this node and session: no text is stale; always so on a kv.frame; default false
---@field temperature? number 0: the likeliest token; above: tokens are drawn, the flatter the larger; default 0
---@field top_k? integer drawn from so many of the likeliest tokens alone; 0: from all; default 0
---@field top_p? number drawn from the likeliest tokens that have this share of the probability; default 1
---@field choices? string[] the texts that an answer is one of; it ends with the last token that tells which
---@field stop? string|string[] a text that ends an answer, as its last part; of several the one that occurs first
---@field draft? tectum.draft a small model proposes tokens, this node's looks at them in one forward: the same texts, sooner
---@field prompt? string|tectum.call a text of its own, read behind its prefix; needs a model whose text is causal
---@field out? string|tectum.call a buffer of tokens, or `stream "name"` of text, which a prefill may read
---@field deadline? tectum.hard|tectum.soft by when an answer is needed
---@field pack_with? string|tectum.call the prefill of the same ring that shares its launch
---@field after? string|tectum.call a node that runs before it
---@field partition? string|tectum.call share of the device
---@field when? tectum.call `policy()`: a decision may skip it

---@param t tectum.decode
---@return tectum.decode
function decode(t) end

---Ranks texts by how likely they are behind a prefix, all of them in one forward.
---@class tectum.score
---@field name string name in traces and for policies
---@field model? string|tectum.call which model; needed when there are several; its text must be causal
---@field kv string|tectum.call the prefix, a kv.frame; or a kv.requests that shares one
---@field candidates string[] the texts, as they continue the prompt: most begin with a space
---@field ends? boolean the model's end token behind each text counts, too; default false
---@field mean? boolean sums are divided by the number of tokens; default false
---@field spawn? tectum.call when texts are ranked: `every(n)` observations, `on_change()` of the instruction, or `on_request()`
---@field supersede? boolean a new request ends the older ones of this node and session; default false
---@field out? string|tectum.call `stream "name"`: the likeliest text, and the ranking
---@field deadline? tectum.hard|tectum.soft by when a ranking is needed
---@field after? string|tectum.call a node that runs before it
---@field partition? string|tectum.call share of the device
---@field when? tectum.call `policy()`: a decision may skip it

---@param t tectum.score
---@return tectum.score
function score(t) end

---Brings segments of a memory into a prefix and recomputes the important ones.
---@class tectum.memory_load
---@field name string name in traces and for policies
---@field model? string|tectum.call which model; needed when there are several
---@field reads string[] the segments input
---@field from string|tectum.call the kv.segments
---@field into string|tectum.call the kv.frame that is filled
---@field overlap? "separate"|"next"|"balanced"|"bounded" how loading runs beside computing; default bounded
---@field select? "keep"|"full"|"prefix"|"reuse"|"cacheblend"|"epic" what is computed anew; all but keep are baselines; default keep
---@field scoring? "paper"|"query_only"|"code"|"lift" how keep finds the segments that matter; default lift
---@field positions? "relocate"|"local0" kept keys are rotated to their place, or stay where they were computed (reuse); default relocate
---@field order? "best_first"|"as_put" how segments stand in the prompt: the most alike first, or as they were first put; default best_first
---@field share? number of the tokens, cacheblend; default 0.16
---@field check_layer? integer where cacheblend compares; default 1
---@field first_tokens? integer of each segment, epic; default 16
---@field recompute? tectum.recompute which share of the tokens is computed anew, by layer; default {}
---@field spawn? tectum.call when segments are recalled: as the prefill that reads them runs, and so without it
---@field after? string|tectum.call a node that runs before it
---@field partition? string|tectum.call share of the device

---@param t tectum.memory_load
---@return tectum.memory_load
function memory_load(t) end

---Makes what was said a segment of a memory: the next observation's prompt may recall it.
---@class tectum.remember
---@field name string name in traces and for policies
---@field model? string|tectum.call the model that reads the memory; needed nowhere
---@field reads string[] streams: whatever of them was finished last is remembered
---@field into string|tectum.call the kv.segments
---@field key? string the segment's id: a newer text takes the place of the older one; without it the node's name

---@param t tectum.remember
---@return tectum.remember
function remember(t) end

---How a chunk is pulled to the one before it, as LeRobot's RTCProcessor does it. A plain table.
---@class tectum.guide
---@field previous string|tectum.call a tensor { rows, columns }: what is left of the earlier chunk from the observation on, in the robot's units; without it the chunk is free
---@field schedule? "zeros"|"ones"|"linear"|"exp" how much rows behind the delay are pulled: not at all, as much, less and less by a line or a curve; default linear
---@field max_guidance_weight? number largest pull of a denoising step; default 10
---@field execution_horizon? integer rows that are pulled, at most; never more than are left; default 10
---@field delay? integer rows that are executed until the new chunk is there: they are pulled whole; default 0
---@field delay_input? string|tectum.call a tensor { 1 }: the delay of an observation, in place of `delay`

---@param t tectum.guide
---@return tectum.guide
function guide(t) end

---Who proposes tokens of a decode node, and how many; written as a plain table.
---@class tectum.draft
---@field model string|tectum.call another model of the same vocabulary; it reads the prompt of the decode node's prefill
---@field tokens integer tokens that it proposes at a time; 4 is a good begin

---@param t tectum.draft
---@return tectum.draft
function draft(t) end

---Share of layer i: max(floor, first x decay^i); written as a plain table.
---@class tectum.recompute
---@field first? number share in the first layer; default 1
---@field decay? number factor from layer to layer; default 0.93
---@field floor? number smallest share; default 0.15

---@param t tectum.recompute
---@return tectum.recompute
function recompute(t) end

---A deadline within the frame; its node always runs.
---@class tectum.hard
---@field ms number milliseconds after the tick, at most the period
---@field on_miss? "hold"|"decay"|"last_chunk"|"zeros"|"stop" what the robot is given instead; default hold
---@field limit? integer misses in a row that are bridged, then stop; 0 = all, or 3 of a robot whose commands are changes; default 0
---@field decay_actions? integer `decay`: actions until the command is zero

---@param t tectum.hard
---@return tectum.hard
function hard(t) end

---A deadline of a request; it may span frames.
---@class tectum.soft
---@field ms number milliseconds after the request
---@field on_miss? "shed"|"continue" the request ends, or goes on; default continue

---@param t tectum.soft
---@return tectum.soft
function soft(t) end

---A share of the device.
---@class tectum.sm
---@field name string what nodes call it
---@field share number part of the device's compute units
---@field priority? "low"|"normal"|"high" who goes first; not followed in this release (W110); default normal

---@param t tectum.sm
---@return tectum.sm
function sm(t) end

---The decision lattice: every point is compiled at load, none later.
---@class tectum.capture
---@field batch? integer[] rows of a decode launch, ascending
---@field k? integer[] decode steps of a frame, ascending
---@field depth? integer[] requests in flight of a ring, ascending
---@field sessions? integer[] observations in one launch of a prefill and its action, ascending; without it as many as the frame has sessions
---@field ratio? number[] shares of recomputation, ascending: policies read them, and ask for at most the largest
---@field slices? integer most pieces that a secondary prefill is cut into beside hard nodes; without it one a layer
---@field max_graphs? integer most captures; default 64
---@field on_miss? "error" what no point covers is an error; default error

---@param t tectum.capture
---@return tectum.capture
function capture(t) end

---Memory budgets: a plan that needs more is refused before weights are loaded.
---@class tectum.memory
---@field device? string|integer of the device, such as "9GiB"
---@field host? string|integer of the host: captures, keys and values that a memory keeps there and brings to prompts

---@param t tectum.memory
---@return tectum.memory
function memory(t) end

---A policy and its parameters.
---@class tectum.use
---@field name? string a policy that comes with the program, or the path of a .lua file, from the pipeline's folder; default default
---@field params? table its parameters; the policy checks them

---@param t tectum.use
---@return tectum.use
function use(t) end

---Bounds of a policy written in Lua, and who takes over.
---@class tectum.guard
---@field fallback? string the policy after too many strikes; default default
---@field soft_us? integer a plan that takes longer is reported; default 100
---@field hard_us? integer a plan that takes longer is cut off; default 500
---@field heap? string|integer memory of the policy; default 512KiB
---@field strikes? integer failures within the window until it is replaced; default 3
---@field window_frames? integer frames that a strike counts for; default 1000

---@param t tectum.guard
---@return tectum.guard
function guard(t) end

---The state that the previous frame left in a resource. In `reads` of a prefill, where it may be left out: the newest text of a stream of an earlier frame.
---@param name string
---@return tectum.call
function prev(name) end

---An output of text, token by token. A prefill that names it in `reads` reads its newest finished text; `stream { name = "plan", default = "stay" }` says what it reads before there is one.
---@param name string|table
---@return tectum.call
function stream(name) end

---A request every n observations; a prefill in every n-th frame.
---@param frames integer
---@return tectum.call
function every(frames) end

---A request in the first frame and wherever the instruction differs from the frame before; `on_change("high")`: wherever that value has a new version.
---@param value string|nil
---@return tectum.call
function on_change(value) end

---Requests come from outside.
---@return tectum.call
function on_request() end

---The policy decides in every frame.
---@return tectum.call
function policy() end

---In an overlay's list: leaves that thing of the base file out. As a field of an overlay, `template = without "template"`: leaves the base's field out.
---@param name string
---@return tectum.call
function without(name) end

---Another pipeline file with changes on top: tables merge, lists of named things merge by name, other lists are replaced.
---@param path string
---@param changes table
---@return tectum.pipeline
function extend(path, changes) end

---The value that another file returns.
---@param path string
---@return any
function include(path) end
