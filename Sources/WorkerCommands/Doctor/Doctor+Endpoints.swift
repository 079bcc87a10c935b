import Clocks
import GoogleOAuth
import HTTPClient
import WorkerConfiguration
import WorkerLifecycle

/// The checks over the network: every endpoint answers, and its clock agrees with this machine's.
extension Doctor {
    /// Long enough for a slow network, short enough for a person who waits.
    private static let deadline: Duration = .seconds(10)

    private var endpoints: [(name: String, endpoint: Endpoint)] {
        let configuration = context.configuration
        let configured = configuration.endpoints
        let always = [
            ("token endpoint", configured.token), ("userinfo endpoint", configured.userinfo),
            ("tokeninfo endpoint", configured.tokeninfo), ("revocation endpoint", configured.revocation),
        ]
        guard configuration.publicListener != nil else { return always }
        return always + [("security events", configuration.securityEventsEndpoint)]
    }

    /// Sends a request without content to all endpoints at once.
    ///
    /// It does not reveal or end anything.
    func endpointDiagnoses() async -> [Diagnosis] {
        let http: HTTPClient
        do {
            http = try context.openHTTP()
        } catch {
            return [.fault("network", "the HTTP client cannot start: \(error)")]
        }
        let found = await withTaskGroup(of: (Int, [Diagnosis]).self) { group in
            for (index, item) in endpoints.enumerated() {
                group.addTask { (index, await examine(item.name, item.endpoint, isFirst: index == 0, over: http)) }
            }
            var found: [Int: [Diagnosis]] = [:]
            for await (index, diagnoses) in group { found[index] = diagnoses }
            return found
        }
        http.shutDown()
        return endpoints.indices.flatMap { found[$0] ?? [] }
    }

    private func examine(
        _ name: String,
        _ endpoint: Endpoint,
        isFirst: Bool,
        over http: HTTPClient
    ) async -> [Diagnosis] {
        do throws(HTTPFailure) {
            let request = HTTPRequest(method: .post, endpoint: endpoint, body: HTTPBody([]))
            let response = try await http.send(request, deadline: Self.deadline)
            let answer = Diagnosis.ok(name, "\(endpoint) answers (status \(response.status))", isAboutEndpoint: true)
            guard isFirst, let date = response.header("date").flatMap({ HTTPDate.read($0) }) else { return [answer] }
            return [answer, Self.judgeSkew(now: context.time.now, theirs: date)]
        } catch {
            let words = "\(endpoint): \(error.message): \(Self.remedy(for: error.kind))"
            return [.fault(name, words, isAboutEndpoint: true)]
        }
    }

    static func judgeSkew(now: Timestamp, theirs: Timestamp) -> Diagnosis {
        let subject = "clock and endpoint"
        let skew = now - theirs
        guard skew.magnitudeOfSpan > tolerableSkew else { return .ok(subject, "agree within a minute") }
        let side = skew > .zero ? "ahead of" : "behind"
        return .warning(
            subject,
            """
            this machine's clock is \(skew.magnitudeOfSpan.inTwoUnits) \(side) the token endpoint's: set it, and \
            synchronize it by NTP (timedatectl set-ntp true)
            """
        )
    }

    static func remedy(for kind: HTTPFailure.Kind) -> String {
        switch kind {
        case .resolve: "see that the host's name is right and that this machine's DNS works"
        case .connect: "see that the address is right and that no firewall is in between"
        case .certificate:
            """
            its certificate is not trusted or is another host's: update the system's ca-certificates, or name the \
            certificate of a proxy or server of your own with --ca-file
            """
        case .tls: "see that the port speaks TLS, and that --ca-file, if given, is a readable PEM file"
        case .timeout: "it did not answer in time: see whether a firewall or proxy is in between, and try again"
        case .sendFailed, .receiveFailed, .bodyTooLarge, .headersTooLarge:
            "what is there does not speak HTTP properly: see that the address is right"
        case .invalidURL, .invalidHeader, .cancelled, .shutDown, .withheld, .expired, .other:
            "see that the address and --ca-file are right, and try again"
        }
    }
}

extension Duration {
    fileprivate var magnitudeOfSpan: Duration { self < .zero ? .zero - self : self }
}
