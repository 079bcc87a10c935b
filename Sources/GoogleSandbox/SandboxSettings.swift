private import Base

/// The settings that apply to all requests.
struct SandboxSettings: Sendable {
    /// The lifetime of an access token in seconds. Google's is 3599.
    var lifetime: Int64 = 3599
    var rotation = RotationPolicy.off
    var latency = Duration.zero
    /// The largest random addition to the latency.
    var latencyJitter = Duration.zero

    /// The fraction of token requests that fail with `error`.
    var errorRate = 0.0
    var error = SandboxFault.answer(.error(500, "internal_failure"))

    /// The fraction of grants that get `invalid_grant` while it is set, always the same ones.
    var waveRate = 0.0

    /// The fault that every request gets.
    var outage: SandboxFault?

    /// The seconds in the Retry-After header of 429 and 503.
    var retryAfter: Int64?
    var refreshTokenExpiresIn: Int64?

    /// The ids of the known clients. If empty, every client is known.
    var clients: [String] = []

    /// The ids of the clients that App Check is enforced for: each token request of theirs is refused, because the
    /// sandbox knows no attestation.
    var appCheck: [String] = []

    /// How long the nonce of a proof is good. Zero refuses each one.
    var nonceLifetime = Duration.seconds(300)

    /// How far the clock by which proofs are judged is ahead of the sandbox's, or behind it if negative.
    var clockAhead = Duration.zero

    /// The seed of the random numbers and of the choice of a wave's grants.
    var seed: UInt64 = 0

    init() {}

    /// Changes only the settings that the object names.
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
            case "error_rate": changed.errorRate = try value.fraction(name)
            case "error": changed.error = try value.fault(name)
            case "wave_rate": changed.waveRate = try value.fraction(name)
            case "outage": changed.outage = value == "none" || value == .null ? nil : try value.fault(name)
            case "retry_after": changed.retryAfter = value == .null ? nil : try value.count(name)
            case "refresh_token_expires_in":
                changed.refreshTokenExpiresIn = value == .null ? nil : try value.integer(name)
            case "clients": changed.clients = try value.array(name).strings(name)
            case "app_check": changed.appCheck = try value.array(name).strings(name)
            case "nonce_lifetime_ms": changed.nonceLifetime = .milliseconds(try value.count(name))
            case "clock_ahead_ms": changed.clockAhead = .milliseconds(try value.integer(name))
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
            "app_check": .array(appCheck.map(OrderedJSON.string)),
            "nonce_lifetime_ms": .integer(nonceLifetime.wholeMilliseconds),
            "clock_ahead_ms": .integer(clockAhead.wholeMilliseconds),
            "seed": .integer(Int64(bitPattern: seed)),
        ]
    }
}

/// The counts of the sandbox's requests and answers.
struct SandboxStatistics: Sendable {
    var requests = 0
    var byRoute: [String: Int] = [:]

    /// Token requests by outcome: "ok", an OAuth error, "http_502", "reset", "hang", "client_gone" and so on.
    var byAnswer: [String: Int] = [:]

    /// Token requests that came while their grant already had one in progress.
    var concurrentSameGrant = 0

    /// Token requests in progress: now, and the maximum so far.
    var inFlight = 0
    var maximumInFlight = 0

    /// Token requests whose proof was accepted, and the last of these proofs.
    var proofs = 0
    var lastProof: String?

    /// Requests on hold now.
    var holding = 0

    /// Token requests with a field that a public client must not send.
    var unexpectedFields = 0

    func json(grants: OrderedJSON?) -> OrderedJSON {
        [
            "requests": .count(requests),
            "by_route": Self.object(byRoute),
            "by_answer": Self.object(byAnswer),
            "concurrent_same_grant": .count(concurrentSameGrant),
            "in_flight": .count(inFlight),
            "max_in_flight": .count(maximumInFlight),
            "proofs": .count(proofs),
            "last_proof": lastProof.map(OrderedJSON.string) ?? .null,
            "holding": .count(holding),
            "unexpected_fields": .count(unexpectedFields),
            "grants": grants,
        ]
    }

    private static func object(_ counts: [String: Int]) -> OrderedJSON {
        .object(counts.sorted { $0.key < $1.key }.map { OrderedJSON.Member(name: $0.key, value: .count($0.value)) })
    }
}
