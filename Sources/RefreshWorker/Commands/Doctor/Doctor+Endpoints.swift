import Base
import Crypto
import GoogleOAuth
import HTTPClient

/// The checks over the network: every endpoint answers, and its clock agrees with this machine's.
extension Doctor {
    /// Long enough for a slow network, short enough for a person who waits.
    private static let deadline: Duration = .seconds(10)

    struct Probe: Sendable {
        let name: String
        let endpoint: Endpoint
        let request: HTTPRequest
        /// Says what a response means.
        let judge: @Sendable (HTTPResponse) -> Check
        /// `false` if the worker refreshes and vends tokens without it.
        var isVital = true
    }

    /// Asks all endpoints at once: the token endpoint with a made-up token, the others without content.
    ///
    /// It does not reveal or end anything.
    func endpointChecks() async -> [Check] {
        let http: HTTPClient
        do {
            http = try context.openHTTP()
        } catch {
            return [.fault("the HTTP client cannot start: \(error)").named("network")]
        }
        let probes = tokenProbes + otherProbes + collectorProbes
        let checks = await withTaskGroup(of: (Int, [Check]).self) { group in
            for (index, probe) in probes.enumerated() {
                group.addTask { (index, await send(probe, showsClock: index == 0, over: http)) }
            }
            return await group.reduce(into: [Int: [Check]]()) { $0[$1.0] = $1.1 }
        }
        http.shutDown()
        return probes.indices.flatMap { checks[$0] ?? [] }
    }

    private func send(_ probe: Probe, showsClock: Bool, over http: HTTPClient) async -> [Check] {
        do throws(HTTPError) {
            let response = try await http.send(probe.request, deadline: Self.deadline)
            let check = probe.judge(response).ofEndpoint(probe.name)
            guard showsClock, let date = response.header("date").flatMap({ Timestamp(httpDate: $0) }) else {
                return [check]
            }
            return [check, Self.skew(now: context.time.now, endpointTime: date).named("clock and endpoint")]
        } catch {
            let finding = "\(probe.endpoint): \(error.message)"
            let advice = Self.remedy(for: error.kind)
            let check = probe.isVital ? Check.fault(finding, advice: advice) : .warning(finding, advice: advice)
            return [check.ofEndpoint(probe.name)]
        }
    }

    /// One probe for each client id, or one without.
    private var tokenProbes: [Probe] {
        var secrets: [String: Secret] = [:]
        do throws(CommandError) {
            secrets = try ClientSecretFile.read(for: configuration).secrets
        } catch {
            // The check of the client secret reports it.
        }
        let endpoint = configuration.endpoints.token
        let ids: [String?] = configuration.allClientIDs.isEmpty ? [nil] : configuration.allClientIDs
        return ids.map { id in
            // No server has issued the token, so nothing can be revealed or ended.
            let request = HTTPRequest(
                refreshing: Secret("1//refresh-worker-doctor-made-this-up"),
                client: OAuthClientCredentials(
                    id: id ?? "refresh-worker-doctor",
                    secret: id.flatMap { secrets[$0] }
                ),
                pattern: .form(to: endpoint)
            )
            return Probe(name: "token endpoint", endpoint: endpoint, request: request) { response in
                let code = JSONValue.object(in: response.body.reveal())?["error"]?.string
                return Self.token(endpoint, asking: id, status: response.status, code: code)
            }
        }
    }

    /// Requests without content, with the method that the worker uses there: another one might be answered by 404.
    private var otherProbes: [Probe] {
        func probe(_ name: String, method: RequestPattern.Method, endpoint: Endpoint) -> Probe {
            let request = HTTPRequest(method: method, endpoint: endpoint, body: method == .post ? HTTPBody([]) : nil)
            return Probe(name: name, endpoint: endpoint, request: request) { response in
                Self.other(endpoint, status: response.status)
            }
        }
        let configured = configuration.endpoints
        let always = [
            probe("userinfo endpoint", method: .get, endpoint: configured.userinfo),
            probe("tokeninfo endpoint", method: .post, endpoint: configured.tokeninfo),
            probe("revocation endpoint", method: .post, endpoint: configured.revocation),
        ]
        let appKeys = configuration.appKeys.compactMap { location -> Probe? in
            guard case .endpoint(let endpoint) = location else { return nil }
            return Self.keyProbe("app's keys", endpoint: endpoint)
        }
        guard configuration.publicListener != nil else { return always + appKeys }
        return always + appKeys + [
            Self.keyProbe("Google's keys", endpoint: configuration.googleKeysEndpoint),
            probe("security events", method: .get, endpoint: configuration.securityEventsEndpoint),
        ]
    }

    private static func keyProbe(_ name: String, endpoint: Endpoint) -> Probe {
        let request = HTTPRequest(method: .get, endpoint: endpoint)
        return Probe(name: name, endpoint: endpoint, request: request) { response in keys(of: endpoint, in: response) }
    }

    /// Judges whether a response is a key set with a key that the worker can use.
    private static func keys(of endpoint: Endpoint, in response: HTTPResponse) -> Check {
        guard response.status == 200, let set = KeySet(JSONValue.object(in: response.body.reveal())) else {
            return .fault(
                "\(endpoint) answers \(response.status) without a key that can be used: RSA of 2048 bits, or P-256",
                advice: "name the address of the login's key set (JWKS)"
            )
        }
        let lifetime = KeySetCache.lifetime(cacheControl: response.header("Cache-Control"))
        return .ok("\(endpoint) has \(set.summary), kept for \(lifetime.inTwoUnits)")
    }

    private static let clientCodes = ["invalid_client", "deleted_client", "disabled_client", "restricted_client"]

    private static func advice(for clientCode: String) -> String {
        switch clientCode {
        case "deleted_client":
            """
            restore it within 30 days after it was deleted, in the Google Cloud console's list of deleted clients: a new \
            one cannot use its refresh tokens (docs/runbook.md#the-client-id-is-deleted-at-google)
            """
        case "disabled_client", "restricted_client":
            "read Google's e-mails to the owners of the Cloud project: Google or an administrator has blocked the client"
        default:
            "copy the client id of your iOS app from the Google Cloud console, and check its secret, if it has one"
        }
    }

    /// Judges whether the response to a made-up token is that of a token endpoint that knows the client id.
    ///
    /// Google answers `invalid_grant` for a known client id, and `invalid_client` for an unknown one. `code` is the
    /// member `error` of the body.
    static func token(_ endpoint: Endpoint, asking clientID: String?, status: Int, code: String?) -> Check {
        let answer = "\(endpoint) answers \(status)"
        let correction = "correct --token-endpoint"
        switch (status, code) {
        case (400...403, "invalid_grant"?):
            let known = clientID.map { ", and knows the client id \(DisplayedText($0))" } ?? ""
            return .ok("\(answer) invalid_grant to a made-up token, as it should\(known)")
        case (400...403, let code?) where clientCodes.contains(code):
            guard let clientID else { return .ok("\(answer) \(code) to a made-up client id, as it should") }
            return .fault(
                "\(answer) \(code): it refuses the client id \(DisplayedText(clientID))",
                advice: advice(for: code)
            )
        case (400...403, let code?):
            let expected = "expected invalid_grant or invalid_client"
            return .warning("\(answer) \(DisplayedText(code)) to a made-up token: \(expected)")
        case (429, _), (500..., _): return .warning("\(answer): it does not work now", advice: "try again later")
        case (300..<400, _):
            return .fault("\(answer), a redirect, which the worker does not follow", advice: correction)
        case (200..<300, _):
            return .fault("\(answer) to a made-up token, so it is not a token endpoint", advice: correction)
        case (404, _): return .fault("\(answer): the path is wrong", advice: correction)
        default: return .fault("\(answer) without an OAuth error, so it is not a token endpoint", advice: correction)
        }
    }

    /// Judges the response of another endpoint to a request without content.
    private static func other(_ endpoint: Endpoint, status: Int) -> Check {
        let answer = "\(endpoint) answers (status \(status))"
        let correction = "correct the address"
        switch status {
        case 300..<400: return .fault("\(answer): it redirects, which the worker does not follow", advice: correction)
        case 404: return .fault("\(answer): its path is wrong", advice: correction)
        default: return .ok(answer)
        }
    }

    static func skew(now: Timestamp, endpointTime: Timestamp) -> Check {
        let skew = now - endpointTime
        guard skew.magnitude > tolerableSkew else { return .ok("agree within a minute") }
        let direction = skew > .zero ? "ahead of" : "behind"
        return .warning(
            "this machine's clock is \(skew.magnitude.inTwoUnits) \(direction) the token endpoint's",
            advice: clockAdvice
        )
    }

    static func remedy(for kind: HTTPError.Kind) -> String {
        switch kind {
        case .resolve: "check the host name and this machine's DNS"
        case .connect: "check the address, and that no firewall is in between"
        case .certificate:
            """
            its certificate is not trusted or is another host's: update the system's ca-certificates, or name the \
            certificate of a proxy or server of your own with --ca-file
            """
        case .tls: "check that the port speaks TLS, and that --ca-file, if given, is a readable PEM file"
        case .timeout: "it did not answer in time: check for a firewall or proxy in between, and try again"
        case .sendFailed, .receiveFailed, .bodyTooLarge, .headersTooLarge:
            "the server does not speak HTTP correctly: check the address"
        case .invalidURL, .invalidHeader, .cancelled, .shutDown, .withheld, .expired, .other:
            "check the address and --ca-file, and try again"
        }
    }
}
