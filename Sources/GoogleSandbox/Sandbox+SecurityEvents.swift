internal import Clocks
internal import HTTPServer

/// The routes of Cross-Account Protection: Google's own, and those by which a test controls them.
extension Sandbox {
    /// Answers like Google; `nil` for a path that does not concern security events.
    func securityEventAnswer(_ request: ServerRequest) -> ServerReply? {
        let isKeyRoute =
            request.method == "GET" && ["/.well-known/risc-configuration", Self.keysPath].contains(request.path)
        guard isKeyRoute || request.path.hasPrefix("/v1beta/stream") else { return nil }
        if let outage = withState({ $0.settings.outage }) {
            guard case .reply(let reply, _)? = withState({ $0.outcomeInstead(outage) }) else { return .drop }
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
            let keys = try withSecurityEvents { (desk) throws(ControlError) in try desk.keySet() }
            var response = ServerResponse.json(keys.text)
            response.headers.append(("Cache-Control", "public, max-age=3600, must-revalidate, no-transform"))
            return .respond(response)
        } catch {
            return .respond(.text(error.message, status: error.status))
        }
    }

    private static var keysPath: String { "/oauth2/v3/certs" }

    /// Handles a control request about security events; `nil` for a path that does not concern them.
    func controlSecurityEvents(_ path: String, _ order: OrderedJSON) throws(ControlError) -> OrderedJSON? {
        switch path {
        case "/control/security-events":
            let order = try complete(SecurityEventSpecification(order, now: time.now))
            return try withSecurityEvents { (desk) throws(ControlError) in try desk.token(for: order) }
        case "/control/security-events/rotate-key":
            let keepsOld = try order["keep_old"]?.bool("keep_old") ?? true
            let key = try withSecurityEvents { (desk) throws(ControlError) in
                try desk.rotateKey(keepingOld: keepsOld).id
            }
            return ["kid": .string(key)]
        case "/control/security-events/stream":
            let isForbidden = try order["forbidden"]?.bool("forbidden")
            return withSecurityEvents { desk in
                desk.isForbidden = isForbidden ?? desk.isForbidden
                return desk.streamView
            }
        case "/control/service-accounts":
            return try withSecurityEvents { (desk) throws(ControlError) in try desk.createAccount() }
        default:
            return nil
        }
    }

    /// Completes the order with the data of the named grant: the account's id, and the client id as the audience.
    private func complete(_ order: SecurityEventSpecification) throws(ControlError) -> SecurityEventSpecification {
        var order = order
        let grant = withState { state in
            if let token = order.refreshToken { return state.placeByRefreshToken[token].map { state.grants[$0] } }
            return state.grants.first { $0.sub == order.sub || (order.sub == nil && $0.email == order.email) }
        }
        order.sub = order.sub ?? grant?.sub
        order.email = order.email ?? grant?.email
        if order.audience.isEmpty { order.audience = [grant?.clientID ?? "sandbox.apps.googleusercontent.com"] }
        return order
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
