internal import Base
internal import HTTPServer

/// The routes of Cross-Account Protection: Google's own, and those by which a test controls them.
extension Sandbox {
    /// Answers like Google, and returns `nil` for a path that does not concern security events.
    func securityEventAnswer(_ request: ServerRequest) -> ServerReply? {
        let isKeyRoute =
            request.method == "GET" && ["/.well-known/risc-configuration", Self.keysPath].contains(request.path)
        guard isKeyRoute || request.path.hasPrefix("/v1beta/stream") else { return nil }
        if let outage = withState({ $0.settings.outage }) {
            guard case .reply(let reply, _)? = withState({ $0.immediateOutcome(of: outage) }) else { return .drop }
            return reply
        }
        guard isKeyRoute else {
            return withSecurityEvents { $0.manage(request, now: time.now) }.map(ServerReply.respond)
        }
        guard request.path == Self.keysPath else {
            let base = "http://\(request.header("Host") ?? "127.0.0.1")"
            let body: OrderedJSON = [
                "issuer": .string(SandboxSecurityEvents.issuer),
                "jwks_uri": .string(base + Self.keysPath),
                "delivery_methods_supported": ["https://schemas.openid.net/secevent/risc/delivery-method/push"],
            ]
            return .respond(.json(body.text))
        }
        do throws(ControlError) {
            let keys = try withSecurityEvents { (securityEvents) throws(ControlError) in try securityEvents.keySet() }
            var response = ServerResponse.json(keys.text)
            response.headers.append(("Cache-Control", "public, max-age=3600, must-revalidate, no-transform"))
            return .respond(response)
        } catch {
            return .respond(.text(error.message, status: error.status))
        }
    }

    private static let keysPath = "/oauth2/v3/certs"

    /// Handles a control request about security events, and returns `nil` for a path that does not concern them.
    func controlSecurityEvents(_ path: String, _ body: OrderedJSON) throws(ControlError) -> OrderedJSON? {
        switch path {
        case "/control/security-events":
            let specification = try complete(SecurityEventSpecification(body, now: time.now))
            return try withSecurityEvents { (securityEvents) throws(ControlError) in
                try securityEvents.token(for: specification)
            }
        case "/control/security-events/rotate-key":
            let keepsOld = try body["keep_old"]?.bool("keep_old") ?? true
            let key = try withSecurityEvents { (securityEvents) throws(ControlError) in
                try securityEvents.rotateKey(keepingOld: keepsOld).id
            }
            return ["kid": .string(key)]
        case "/control/security-events/stream":
            let isForbidden = try body["forbidden"]?.bool("forbidden")
            return withSecurityEvents { securityEvents in
                securityEvents.isForbidden = isForbidden ?? securityEvents.isForbidden
                return securityEvents.streamView
            }
        case "/control/service-accounts":
            return try withSecurityEvents { (securityEvents) throws(ControlError) in try securityEvents.createAccount()
            }
        default:
            return nil
        }
    }

    /// Completes the specification with the data of the named grant: the account's id, and the client id as the
    /// audience.
    private func complete(_ incomplete: SecurityEventSpecification) throws(ControlError) -> SecurityEventSpecification {
        var specification = incomplete
        let grant = withState { state in
            if let token = specification.refreshToken {
                return state.indexByRefreshToken[token].map { state.grants[$0] }
            }
            return state.grants.first {
                $0.sub == specification.sub || (specification.sub == nil && $0.email == specification.email)
            }
        }
        specification.sub = specification.sub ?? grant?.sub
        specification.email = specification.email ?? grant?.email
        if specification.audience.isEmpty {
            specification.audience = [grant?.clientID ?? "sandbox.apps.googleusercontent.com"]
        }
        return specification
    }
}

extension SandboxSecurityEvents {
    fileprivate var streamView: OrderedJSON {
        [
            "url": stream.map { .string($0.url) } ?? .null,
            "enabled": stream.map { .bool($0.isEnabled) } ?? .null,
            "events_requested": .array((stream?.events ?? []).map(OrderedJSON.string)),
            "verifications": .array(stream?.verifications ?? []),
            "forbidden": .bool(isForbidden),
        ]
    }
}
