internal import Base

/// The actions and views of the control routes.
extension SandboxState {
    private static let defaultClientID = "sandbox.apps.googleusercontent.com"
    private static let defaultScope =
        "https://www.googleapis.com/auth/gmail.readonly https://www.googleapis.com/auth/userinfo.email "
        + "https://www.googleapis.com/auth/userinfo.profile openid"

    // MARK: Creating grants

    /// Creates all of the grants or none, each with a first access token.
    mutating func createGrants(_ body: OrderedJSON, now: Timestamp) throws(ControlError) -> OrderedJSON {
        var count: Int64 = 0
        var prefix = "user"
        var descriptions: [OrderedJSON] = []
        for (name, value) in try body.members(of: "the body") {
            switch name {
            case "count": count = try value.count(name)
            case "prefix": prefix = try value.string(name)
            case "grants": descriptions = try value.array(name)
            default: throw ControlError("unknown field \(name)")
            }
        }
        guard count <= 5_000_000 else { throw ControlError("count must be at most 5000000") }
        descriptions += Array(repeating: [:], count: Int(count))
        let before = self
        do {
            var created: [OrderedJSON] = []
            created.reserveCapacity(descriptions.count)
            for grant in descriptions { created.append(try createGrant(grant, prefix: prefix, now: now)) }
            return .array(created)
        } catch {
            self = before
            throw error
        }
    }

    mutating func createGrant(_ body: OrderedJSON, prefix: String = "user", now: Timestamp)
        throws(ControlError) -> OrderedJSON
    {
        let index = grants.count
        let number = String(index + 1)
        var refreshToken: String?
        var grant = SandboxGrant(
            sub: "1" + String(repeating: "0", count: max(0, 20 - number.count)) + number,
            email: "\(prefix)\(number)@example.com",
            name: "User \(number)",
            clientID: settings.clients.first ?? Self.defaultClientID,
            scope: Self.defaultScope,
            refreshTokens: RefreshTokenChain("")
        )
        for (field, value) in try body.members(of: "a grant") {
            switch field {
            case "refresh_token": refreshToken = try value.string(field)
            case "sub": grant.sub = try value.string(field)
            case "email": grant.email = try value.string(field)
            case "client_id": grant.clientID = try value.string(field)
            case "client_secret": grant.clientSecret = try value.string(field)
            case "scope": grant.scope = try value.string(field)
            case "name": grant.name = try value.string(field)
            case "lifetime": grant.lifetime = try value.integer(field)
            case "email_verified": grant.emailIsVerified = try value.bool(field)
            case "hd": grant.hostedDomain = try value.string(field)
            default: throw ControlError("a grant: unknown field \(field)")
            }
        }
        let token = refreshToken ?? newRefreshToken()
        guard indexByRefreshToken[token] == nil else { throw ControlError("a grant: its refresh_token exists already") }
        grant.refreshTokens = RefreshTokenChain(token)
        grants.append(grant)
        indexByRefreshToken[token] = index
        indicesBySub[grant.sub, default: []].append(index)

        let seconds = grant.lifetime ?? settings.lifetime
        let expiry = now + .seconds(seconds.clamped(to: -4_000_000_000...4_000_000_000))
        return [
            "refresh_token": .string(token),
            "access_token": .string(newAccessToken(of: index, lifetime: seconds, now: now)),
            "sub": .string(grant.sub),
            "email": .string(grant.email),
            "client_id": .string(grant.clientID),
            "scope": .string(grant.scope),
            "expires_at": .integer(expiry.milliseconds / 1000),
        ]
    }

    // MARK: Scripting grants

    /// Changes the selected grants and returns their number.
    mutating func setGrants(_ body: OrderedJSON) throws(ControlError) -> OrderedJSON {
        let indices = try selected(by: body)
        for index in indices {
            var grant = grants[index]
            for (name, value) in try body.members(of: "the body") {
                switch name {
                case "refresh_token", "sub", "email": break
                case "revoked": grant.isRevoked = try value.bool(name)
                case "answer": grant.script = try Self.script(value)
                case "latency_ms": grant.latency = value == .null ? nil : .milliseconds(try value.count(name))
                case "hang": grant.stalls = try value.bool(name)
                case "hold": grant.isOnHold = try value.bool(name)
                case "lifetime": grant.lifetime = value == .null ? nil : try value.integer(name)
                default: throw ControlError("unknown field \(name)")
                }
            }
            grants[index] = grant
        }
        return ["changed": .count(indices.count)]
    }

    /// Ends the hold on the selected grants, or on all.
    mutating func release(_ body: OrderedJSON) throws(ControlError) -> OrderedJSON {
        let indices = body == [:] ? Array(grants.indices) : try selected(by: body)
        let onHold = indices.filter { grants[$0].isOnHold }
        for index in onHold { grants[index].isOnHold = false }
        return ["released": .count(onHold.count)]
    }

    private func selected(by body: OrderedJSON) throws(ControlError) -> [Int] {
        let indices: [Int]
        if let token = body["refresh_token"] {
            indices = indexByRefreshToken[try token.string("refresh_token")].map { [$0] } ?? []
        } else if let sub = body["sub"] {
            indices = indicesBySub[try sub.string("sub")] ?? []
        } else if let email = body["email"] {
            let wanted = try email.string("email")
            indices = grants.indices.filter { grants[$0].email == wanted }
        } else {
            throw ControlError("refresh_token, sub or email must select the grant")
        }
        guard !indices.isEmpty else { throw ControlError("no such grant") }
        return indices
    }

    private static func script(_ value: OrderedJSON) throws(ControlError) -> SandboxGrant.Script? {
        guard value != .null else { return nil }
        let times = value["times"] ?? .null
        return SandboxGrant.Script(
            fault: try value.fault("answer"),
            times: times == .null ? nil : max(1, try times.count("times"))
        )
    }

    // MARK: Showing

    var grantList: OrderedJSON {
        .array(
            grants.map { grant in
                [
                    "sub": .string(grant.sub),
                    "email": .string(grant.email),
                    "client_id": .string(grant.clientID),
                    "scope": .string(grant.scope),
                    "refresh_token": .string(grant.refreshTokens.newest),
                    "live_refresh_tokens": .array(
                        grant.isRevoked ? [] : grant.refreshTokens.live.map(OrderedJSON.string)
                    ),
                    "alive": .bool(!grant.isRevoked),
                    "bound_to": grant.boundTo.map(OrderedJSON.string) ?? .null,
                ]
            }
        )
    }

    func statisticsJSON(withGrants: Bool) -> OrderedJSON {
        let list = grants.map { grant -> OrderedJSON in
            [
                "sub": .string(grant.sub),
                "email": .string(grant.email),
                "requests": .count(grant.requests),
                "ok": .count(grant.successes),
                "revoked": .bool(grant.isRevoked),
                "current_refresh_token": .string(grant.refreshTokens.newest),
            ]
        }
        return statistics.json(grants: withGrants ? .array(list) : nil)
    }
}
