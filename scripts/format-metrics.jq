# Formats the lines of the metrics log, and the worker's messages among them, for people. Arguments: $names, a JSON object
# of grant ids to names, with the name `other` for an id that it lacks; $colour.
def paint($code): if $colour == "" then . else "\u001b[\($code)m\(.)\u001b[0m" end;
def name: . as $id | ($names | fromjson) | .[$id] // .other // $id;
def pad($width): . + (" " * ([$width - length, 0] | max));
def clock: .time[11:19];
def who: .grant | name | pad(16);
def visible: gsub("\u001b\\[[0-9]+m"; "") | length;
# Breaks a line between words so that it fits 80 columns. The later lines begin below the text, after time and name.
def folded:
  .[0:26] as $start
  | reduce (.[26:] | split(" "))[] as $word ([];
      if length > 0 and (.[-1] + " " + $word | visible) <= 54 then .[-1] += " " + $word else . + [$word] end)
  | $start + join("\n" + " " * 26);

. as $line
| (try fromjson catch ($line | capture("T(?<clock>[0-9:]{8})\\S*Z (?<level>\\w+) (?<message>.*)") // {message: $line}))
| (if .message then
  "\(.clock // "") \(if .level == "notice" then "worker" else .level // "worker" end | pad(16)) \(.message)"
# The worker's message says the same.
elif .event == "started" or .event == "stopped" then empty
elif .event == "refresh" then
  if .outcome == "refreshed" then
    "\(clock) \(who) " + ("refreshed" | paint(32)) + " in \(.latency_ms) ms" + (if .rotated then ", a new refresh token" else "" end)
      + (if .stands_for then ", one of \(.stands_for)" else "" end)
  else
    "\(clock) \(who) " + (.outcome | gsub("_"; " ") | paint(33)) + " on try \(.attempt): \(.answer // .verdict)"
  end
elif .event == "state" then
  (if .to == "active" then 32 else 31 end) as $code
  | "\(clock) \(who) " + ("\(.from) -> \(.to)" | paint($code))
    + (if .reason == "" then "" else " (\(.reason))" end)
elif .event == "breaker" then
  "\(clock) \("breaker" | pad(16)) " + (.change | paint(35)) + (if .reason == "" then "" else " (\(.reason))" end)
elif .event == "pacer" then
  "\(clock) \("pace" | pad(16)) \(.ceiling) requests a second" + (if .paused_ms > 0 then ", paused \(.paused_ms) ms" else "" end)
elif .event == "alarm" then
  "\(clock) \("ALARM" | pad(16)) " + (.text | paint(31))
elif .event == "summary" then
  "\(clock) \("summary" | pad(16)) " + ("\(.refreshed) refreshed, \(.retrying) to retry, \(.overdue) overdue"
    + (if .grants_active then "; \(.grants_active + .grants_retrying) connected, \(.grants_suspended + .grants_reauth_required + .grants_disconnected) not" else "" end) | paint(2))
else
  (if .grant then .grant |= name else . end | del(.time, .event, .worker) | to_entries) as $fields
  | "\(clock) \(.event | pad(16)) " + ($fields | map("\(.key) \(.value)") | join(", "))
end)
| folded
