import Base
import Crypto
import GoogleOAuth
import HTTPClient
import Worker

/// The checks over the network: every endpoint answers, and its clock agrees with this machine's.
extension Doctor {
    /// Long enough for a slow network, short enough for a person who waits.
    private static let deadline: Duration = .seconds(10)

    private static let userinfoName = "userinfo endpoint"
    private static let securityEventsName = "security events"

    private var endpoints: [(name: String, endpoint: Endpoint)] {
        let configuration = context.configuration
        let configured = configuration.endpoints
        let always = [
            (Self.userinfoName, configured.userinfo), ("tokeninfo endpoint", configured.tokeninfo),
            ("revocation endpoint", configured.revocation),
        ]
        guard configuration.publicListener != nil else { return always }
        return always + [(Self.securityEventsName, configuration.securityEventsEndpoint)]
    }

    /// Asks all endpoints at once: the token endpoint with a made-up token, the others without content.
    ///
    /// It does not reveal or end anything.
    func endpointDiagnoses() async -> [Diagnosis] {
        let http: HTTPClient
        do {
            http = try context.openHTTP()
        } catch {
            return [.fault("network", "the HTTP client cannot start: \(error)")]
        }
        let (probes, endpoints) = (tokenProbes, endpoints)
        let diagnoses = await withTaskGroup(of: (Int, [Diagnosis]).self) { group in
            for (index, probe) in probes.enumerated() {
                group.addTask { (index, await examine(probe, showsClock: index == 0, over: http)) }
            }
            for (index, item) in endpoints.enumerated() {
                group.addTask { (probes.count + index, [await examine(item.name, item.endpoint, over: http)]) }
            }
            var byIndex: [Int: [Diagnosis]] = [:]
            for await (index, diagnoses) in group { byIndex[index] = diagnoses }
            return byIndex
        }
        http.shutDown()
        return (0..<probes.count + endpoints.count).flatMap { diagnoses[$0] ?? [] }
    }

    /// One probe for each client id, or one without.
    private var tokenProbes: [TokenEndpointProbe] {
        var secrets: [String: Secret] = [:]
        do throws(CommandFailure) {
            secrets = try CommandContext.clientSecrets(of: context.configuration).secrets
        } catch {
            // The check of the client secret reports it.
        }
        let endpoint = context.configuration.endpoints.token
        let probes = context.configuration.allClientIDs.map { id in
            TokenEndpointProbe(endpoint: endpoint, clientID: id, clientSecret: secrets[id])
        }
        return probes.isEmpty ? [TokenEndpointProbe(endpoint: endpoint, clientID: nil, clientSecret: nil)] : probes
    }

    private func examine(_ probe: TokenEndpointProbe, showsClock: Bool, over http: HTTPClient) async -> [Diagnosis] {
        do throws(HTTPFailure) {
            let response = try await http.send(probe.request, deadline: Self.deadline)
            let answer = probe.diagnosis(of: response)
            guard showsClock, let date = response.header("date").flatMap({ Timestamp(httpDate: $0) }) else {
                return [answer]
            }
            return [answer, Self.checkSkew(now: context.time.now, endpointTime: date)]
        } catch {
            return [Self.fault(TokenEndpointProbe.subject, probe.endpoint, error)]
        }
    }

    private func examine(_ name: String, _ endpoint: Endpoint, over http: HTTPClient) async -> Diagnosis {
        do throws(HTTPFailure) {
            let response = try await http.send(Self.request(name, endpoint), deadline: Self.deadline)
            return Self.check(name, endpoint, status: response.status)
        } catch {
            return Self.fault(name, endpoint, error)
        }
    }

    private static func fault(_ name: String, _ endpoint: Endpoint, _ failure: HTTPFailure) -> Diagnosis {
        .fault(name, "\(endpoint): \(failure.message)", advice: remedy(for: failure.kind), isAboutEndpoint: true)
    }

    /// Makes a request without content, with the method that the worker uses there: another one may be answered by 404.
    private static func request(_ name: String, _ endpoint: Endpoint) -> HTTPRequest {
        [userinfoName, securityEventsName].contains(name)
            ? HTTPRequest(method: .get, endpoint: endpoint)
            : HTTPRequest(method: .post, endpoint: endpoint, body: HTTPBody([]))
    }

    /// Judges the answer of another endpoint to a request without content.
    static func check(_ name: String, _ endpoint: Endpoint, status: Int) -> Diagnosis {
        let answer = "\(endpoint) answers (status \(status))"
        switch status {
        case 300..<400:
            let text = "\(answer): it redirects, which the worker does not follow"
            return .fault(name, text, advice: "correct the address", isAboutEndpoint: true)
        case 404:
            return .fault(name, "\(answer): its path is wrong", advice: "correct the address", isAboutEndpoint: true)
        default: return .ok(name, answer)
        }
    }

    static func checkSkew(now: Timestamp, endpointTime: Timestamp) -> Diagnosis {
        let subject = "clock and endpoint"
        let skew = now - endpointTime
        guard skew.magnitude > tolerableSkew else { return .ok(subject, "agree within a minute") }
        let direction = skew > .zero ? "ahead of" : "behind"
        return .warning(
            subject,
            "this machine's clock is \(skew.magnitude.inTwoUnits) \(direction) the token endpoint's",
            advice: "set it, and synchronize it by NTP (timedatectl set-ntp true)"
        )
    }

    static func remedy(for kind: HTTPFailure.Kind) -> String {
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

extension Duration {
    fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}

/// A refresh with a made-up token, which shows if the address is a token endpoint and if it knows the client id.
///
/// Google answers `invalid_grant` for a known client id, and `invalid_client` for an unknown one.
struct TokenEndpointProbe {
    static let subject = "token endpoint"
    /// No server has issued it, so nothing can be revealed or ended.
    private static let madeUpToken = "1//refresh-worker-doctor-made-this-up"
    private static let madeUpClientID = "refresh-worker-doctor"

    let endpoint: Endpoint
    /// The client id to ask about, or `nil` if none is configured.
    let clientID: String?
    let clientSecret: Secret?

    var request: HTTPRequest {
        let client = OAuthClientCredentials(id: clientID ?? Self.madeUpClientID, secret: clientSecret)
        return HTTPRequest(refreshing: Secret(Self.madeUpToken), client: client, pattern: .form(to: endpoint))
    }

    func diagnosis(of response: HTTPResponse) -> Diagnosis {
        let code = JSONValue.object(in: response.body.reveal())?["error"]?.string
        return diagnosis(status: response.status, code: code)
    }

    /// Judges an answer by its status and the member `error` of its body, `nil` if it has none.
    func diagnosis(status: Int, code: String?) -> Diagnosis {
        let answer = "\(endpoint) answers \(status)"
        switch (status, code) {
        case (400...403, "invalid_grant"?):
            let known = clientID.map { ", and knows the client id \(DisplayedText($0))" } ?? ""
            return ok("\(answer) invalid_grant to a made-up token, as it should\(known)")
        case (400...403, let code?) where Self.clientCodes.contains(code):
            guard let clientID else { return ok("\(answer) \(code) to a made-up client id, as it should") }
            let advice =
                "copy the client id of your iOS app from the Google Cloud console, and check its secret, if it has one"
            return fault("\(answer) \(code): it refuses the client id \(DisplayedText(clientID))", advice: advice)
        case (400...403, let code?):
            return warning(
                "\(answer) \(DisplayedText(code)) to a made-up token: expected invalid_grant or invalid_client"
            )
        case (429, _), (500..., _):
            return warning("\(answer): it does not work now", advice: "try again later")
        case (300..<400, _):
            return fault("\(answer), a redirect, which the worker does not follow", advice: "correct --token-endpoint")
        case (200..<300, _):
            return fault(
                "\(answer) to a made-up token, so it is not a token endpoint",
                advice: "correct --token-endpoint"
            )
        case (404, _):
            return fault("\(answer): the path is wrong", advice: "correct --token-endpoint")
        default:
            return fault(
                "\(answer) without an OAuth error, so it is not a token endpoint",
                advice: "correct --token-endpoint"
            )
        }
    }

    private static let clientCodes = ["invalid_client", "deleted_client", "disabled_client", "restricted_client"]

    private func ok(_ text: String) -> Diagnosis { .ok(Self.subject, text) }

    private func warning(_ finding: String, advice: String? = nil) -> Diagnosis {
        .warning(Self.subject, finding, advice: advice)
    }

    private func fault(_ finding: String, advice: String) -> Diagnosis {
        .fault(Self.subject, finding, advice: advice, isAboutEndpoint: true)
    }
}
