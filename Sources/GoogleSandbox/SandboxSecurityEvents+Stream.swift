internal import Base
internal import Crypto
internal import HTTPServer

/// The management of the stream, like risc.googleapis.com, with its authentication.
extension SandboxSecurityEvents {
    private static let audience = "https://risc.googleapis.com/google.identity.risc.v1beta.RiscManagementService"

    /// Creates a service account and returns its key file, which is shown only once.
    mutating func createAccount() throws(ControlError) -> OrderedJSON {
        let number = nextNumber()
        let key = try Self.newKey()
        let keyID = "account-key-\(number)"
        let email = "risc-\(number)@sandbox.iam.gserviceaccount.com"
        do throws(CryptoError) {
            let numbers = try key.publicNumbers()
            let publicKey = try PublicKey(modulus: numbers.modulus, exponent: numbers.exponent)
            accounts[keyID] = Account(email: email, key: publicKey)
            return [
                "type": "service_account",
                "project_id": "sandbox",
                "private_key_id": .string(keyID),
                "private_key": .string(try key.pem().reveal()),
                "client_email": .string(email),
            ]
        } catch {
            throw ControlError("cannot create an account: \(error)", status: 500)
        }
    }

    /// Answers a request to `/v1beta/stream…`, and returns `nil` if Google has no such route.
    mutating func manage(_ request: ServerRequest, now: Timestamp) -> ServerResponse? {
        let body = OrderedJSON.parsed(request.body) ?? .null
        let action: (inout SandboxSecurityEvents) -> ServerResponse
        switch (request.method, request.path) {
        case ("GET", "/v1beta/stream"): action = { $0.showStream() }
        case ("POST", "/v1beta/stream:update"): action = { $0.updateStream(body) }
        case ("GET", "/v1beta/stream/status"): action = { $0.showStatus() }
        case ("POST", "/v1beta/stream/status:update"): action = { $0.updateStatus(body) }
        case ("POST", "/v1beta/stream:verify"): action = { $0.verifyStream(body) }
        default: return nil
        }
        guard isAuthenticated(BearerToken(of: request).text, now: now) else {
            return Self.refusal(
                401,
                code: "UNAUTHENTICATED",
                message: "Request had invalid authentication credentials."
            )
        }
        guard !isForbidden else {
            return Self.refusal(403, code: "PERMISSION_DENIED", message: "The caller does not have permission")
        }
        return action(&self)
    }

    private func isAuthenticated(_ bearer: String?, now: Timestamp) -> Bool {
        guard let bearer, let token = Self.parsed(bearer) else { return false }
        guard let keyID = token.keyID, let account = accounts[keyID], token.verifies(with: account.key) else {
            return false
        }
        let claims = token.claims
        guard claims["iss"]?.string == account.email, claims["sub"]?.string == account.email else { return false }
        guard claims["aud"]?.string == Self.audience else { return false }
        guard let issued = claims["iat"]?.integer, let expires = claims["exp"]?.integer else { return false }
        return Self.isValid(from: issued, to: expires, at: now.milliseconds / 1000)
    }

    private static func parsed(_ bearer: String) -> SignedToken? {
        do throws(CryptoError) {
            return try SignedToken(bearer, limit: 8192)
        } catch {
            return nil
        }
    }

    /// `true` for a token of an hour at most that is valid now, by a clock that can be a minute behind.
    private static func isValid(from issued: Int64, to expires: Int64, at now: Int64) -> Bool {
        let wasIssued = issued <= now + 60
        let hasExpired = expires <= now
        let isTooLong = expires > issued + 3600
        return wasIssued && !hasExpired && !isTooLong
    }

    private func showStream() -> ServerResponse {
        guard let stream else { return Self.noStream }
        return Self.answer([
            "delivery": [
                "delivery_method": "https://schemas.openid.net/secevent/risc/delivery-method/push",
                "url": .string(stream.url),
            ],
            "events_requested": .array(stream.events.map(OrderedJSON.string)),
        ])
    }

    private mutating func updateStream(_ body: OrderedJSON) -> ServerResponse {
        guard let url = body["delivery"]?["url"]?.stringValue, Self.canReceive(url) else {
            return Self.refusal(400, code: "INVALID_ARGUMENT", message: "delivery.url must be an https URL")
        }
        guard case .array(let types)? = body["events_requested"], !types.isEmpty else {
            return Self.refusal(400, code: "INVALID_ARGUMENT", message: "events_requested must not be empty")
        }
        var updated = stream ?? Stream(url: url, events: [])
        updated.url = url
        updated.events = types.compactMap(\.stringValue)
        stream = updated
        return Self.answer([:])
    }

    private static func canReceive(_ url: String) -> Bool {
        url.hasPrefix("https://") || url.hasPrefix("http://127.")
    }

    private func showStatus() -> ServerResponse {
        guard let stream else { return Self.noStream }
        return Self.answer(["status": stream.isEnabled ? "enabled" : "disabled"])
    }

    private mutating func updateStatus(_ body: OrderedJSON) -> ServerResponse {
        guard stream != nil else { return Self.noStream }
        switch body["status"]?.stringValue {
        case "enabled"?: stream?.isEnabled = true
        case "disabled"?: stream?.isEnabled = false
        default: return Self.refusal(400, code: "INVALID_ARGUMENT", message: "status must be enabled or disabled")
        }
        return Self.answer([:])
    }

    private mutating func verifyStream(_ body: OrderedJSON) -> ServerResponse {
        guard stream != nil else { return Self.noStream }
        stream?.verifications.append(body["state"] ?? .null)
        return Self.answer([:])
    }

    private static var noStream: ServerResponse {
        refusal(404, code: "NOT_FOUND", message: "Requested entity was not found.")
    }

    private static func answer(_ body: OrderedJSON) -> ServerResponse { .json(body.text) }

    private static func refusal(_ status: Int, code: OrderedJSON, message: OrderedJSON) -> ServerResponse {
        let body: OrderedJSON = ["error": ["code": .count(status), "message": message, "status": code]]
        return .json(body.text, status: status)
    }
}
