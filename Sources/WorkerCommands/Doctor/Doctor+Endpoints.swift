import Clocks
import GoogleOAuth
import HTTPClient
import Secrets
import WorkerConfiguration
import WorkerLifecycle

/// The checks over the network: every endpoint answers, and its clock agrees with this machine's.
extension Doctor {
    /// Long enough for a slow network, short enough for a person who waits.
    private static let deadline: Duration = .seconds(10)

    /// It is fetched with GET, so that its answer to a POST says little.
    private static let securityEventsName = "security events"

    private var endpoints: [(name: String, endpoint: Endpoint)] {
        let configuration = context.configuration
        let configured = configuration.endpoints
        let always = [
            ("token endpoint", configured.token), ("userinfo endpoint", configured.userinfo),
            ("tokeninfo endpoint", configured.tokeninfo), ("revocation endpoint", configured.revocation),
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
        let diagnoses = await withTaskGroup(of: (Int, [Diagnosis]).self) { group in
            for (index, item) in endpoints.enumerated() {
                group.addTask { (index, await examine(item.name, item.endpoint, isFirst: index == 0, over: http)) }
            }
            var byIndex: [Int: [Diagnosis]] = [:]
            for await (index, diagnoses) in group { byIndex[index] = diagnoses }
            return byIndex
        }
        http.shutDown()
        return endpoints.indices.flatMap { diagnoses[$0] ?? [] }
    }

    private func examine(
        _ name: String,
        _ endpoint: Endpoint,
        isFirst: Bool,
        over http: HTTPClient
    ) async -> [Diagnosis] {
        do throws(HTTPFailure) {
            let probe = isFirst ? tokenProbe(of: endpoint) : nil
            let request = probe?.request ?? HTTPRequest(method: .post, endpoint: endpoint, body: HTTPBody([]))
            let response = try await http.send(request, deadline: Self.deadline)
            let answer = probe?.diagnosis(of: response) ?? Self.check(name, endpoint, status: response.status)
            guard isFirst, let date = response.header("date").flatMap({ HTTPDate.read($0) }) else { return [answer] }
            return [answer, Self.checkSkew(now: context.time.now, endpointTime: date)]
        } catch {
            let text = "\(endpoint): \(error.message): \(Self.remedy(for: error.kind))"
            return [.fault(name, text, isAboutEndpoint: true)]
        }
    }

    private func tokenProbe(of endpoint: Endpoint) -> TokenEndpointProbe {
        let clientID = context.configuration.clientIDs.first
        var secret: Secret?
        do throws(CommandFailure) {
            let secrets = try CommandContext.clientSecrets(of: context.configuration).secrets
            secret = clientID.flatMap { secrets[$0] }
        } catch {
            // The check of the client secret reports it.
        }
        return TokenEndpointProbe(endpoint: endpoint, clientID: clientID, clientSecret: secret)
    }

    /// Judges the answer of another endpoint to a request without content.
    static func check(_ name: String, _ endpoint: Endpoint, status: Int) -> Diagnosis {
        let answer = "\(endpoint) answers (status \(status))"
        guard name != securityEventsName else { return .ok(name, answer, isAboutEndpoint: true) }
        switch status {
        case 300..<400:
            return .fault(name, "\(answer): it redirects, which the worker does not follow: correct the address", isAboutEndpoint: true)
        case 404: return .fault(name, "\(answer): its path is wrong: correct the address", isAboutEndpoint: true)
        default: return .ok(name, answer, isAboutEndpoint: true)
        }
    }

    static func checkSkew(now: Timestamp, endpointTime: Timestamp) -> Diagnosis {
        let subject = "clock and endpoint"
        let skew = now - endpointTime
        guard skew.magnitude > tolerableSkew else { return .ok(subject, "agree within a minute") }
        let direction = skew > .zero ? "ahead of" : "behind"
        return .warning(
            subject,
            """
            this machine's clock is \(skew.magnitude.inTwoUnits) \(direction) the token endpoint's: set it, and \
            synchronize it by NTP (timedatectl set-ntp true)
            """
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
