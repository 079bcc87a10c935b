-- Requests the tokens of all users in turn, in a different order in each thread; or only BENCH_PATH, if it is set.
local users = tonumber(os.getenv("BENCH_USERS"))
local requests = {}
local number = 0

function setup(thread)
    number = number + 1
    thread:set("offset", number * 7919)
end

function init(arguments)
    local path = os.getenv("BENCH_PATH") or ""
    for user = 0, users - 1 do
        local target = path ~= "" and path or "/v1/grants/user-" .. user .. "/token?min_ttl=60"
        requests[user] = wrk.format("GET", target, {
            ["Host"] = "localhost",
            ["Authorization"] = "Bearer " .. os.getenv("BENCH_CREDENTIAL"),
        })
    end
end

local count = 0
function request()
    count = count + 1
    return requests[(offset + count * 31) % users]
end

-- wrk measures in microseconds.
function done(summary, latency, _)
    local failed = summary.errors.status + summary.errors.connect + summary.errors.read
        + summary.errors.write + summary.errors.timeout
    io.write(string.format(
        "%d answers in %.1f s: %.0f a second, p50 %.2f ms, p99 %.2f ms, %d failed\n",
        summary.requests, summary.duration / 1e6, summary.requests / (summary.duration / 1e6),
        latency:percentile(50) / 1000, latency:percentile(99) / 1000, failed
    ))
end
