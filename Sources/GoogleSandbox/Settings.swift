private import Clocks

/// How the sandbox behaves at large.
struct Settings: Sendable {
    /// Seconds that an access token lives; Google says 3599.
    var lifetime: Int64 = 3599
    var rotation = Rotation.off
    var latency = Duration.zero
    /// Each answer takes up to this much longer.
    var latencyJitter = Duration.zero

    /// The part of token requests that fail with `error`.
    var errorRate = 0.0
    var error = Fault.answer(.error(500, "internal_failure"))

    /// The part of grants that get `invalid_grant` for as long as this stands; always the same ones.
    var waveRate = 0.0

    /// What every request gets.
    var outage: Fault?

    /// Seconds for the Retry-After header of 429 and 503.
    var retryAfter: Int64?
    var refreshTokenExpiresIn: Int64?

    /// The clients that exist; while none is named, any does.
    var clients: [String] = []

    /// What chance and the choice of a wave's grants follow.
    var seed: UInt64 = 0

    init() {}

    /// Changes what the object names and nothing else.
    mutating func apply(_ change: OrderedJSON) throws(ControlError) {
        var changed = self
        for (name, value) in try change.members(of: "settings") {
            switch name {
            case "lifetime": changed.lifetime = try value.integer(name)
            case "rotation": changed.rotation = try value.bool(name) ? (rotation == .strict ? .strict : .careful) : .off
            case "strict_rotation":
                changed.rotation = try value.bool(name) ? .strict : (rotation == .off ? .off : .careful)
            case "latency_ms": changed.latency = .milliseconds(try value.count(name))
            case "latency_jitter_ms": changed.latencyJitter = .milliseconds(try value.count(name))
            case "error_rate": changed.errorRate = try value.share(name)
            case "error": changed.error = try value.fault(name)
            case "wave_rate": changed.waveRate = try value.share(name)
            case "outage": changed.outage = value == "none" || value == .null ? nil : try value.fault(name)
            case "retry_after": changed.retryAfter = value == .null ? nil : try value.count(name)
            case "refresh_token_expires_in":
                changed.refreshTokenExpiresIn = value == .null ? nil : try value.integer(name)
            case "clients": changed.clients = try value.array(name).strings(name)
            case "seed": changed.seed = UInt64(bitPattern: try value.integer(name))
            default: throw ControlError("unknown setting \(name)")
            }
        }
        self = changed
    }

    var json: OrderedJSON {
        [
            "lifetime": .integer(lifetime),
            "rotation": .bool(rotation != .off),
            "strict_rotation": .bool(rotation == .strict),
            "latency_ms": .integer(latency.wholeMilliseconds),
            "latency_jitter_ms": .integer(latencyJitter.wholeMilliseconds),
            "error_rate": .number(errorRate),
            "error": .string(error.name),
            "wave_rate": .number(waveRate),
            "outage": .string(outage?.name ?? "none"),
            "retry_after": retryAfter.map(OrderedJSON.integer) ?? .null,
            "refresh_token_expires_in": refreshTokenExpiresIn.map(OrderedJSON.integer) ?? .null,
            "clients": .array(clients.map(OrderedJSON.string)),
            "seed": .integer(Int64(bitPattern: seed)),
        ]
    }
}
