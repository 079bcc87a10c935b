internal import Base
internal import HTTPServer

/// The state and decisions of the sandbox: it takes requests and times, returns answers, and has no other effects.
///
/// A request to one of Google's endpoints takes two steps: ``begin(_:)`` when it arrives, and ``answer(_:for:now:)``
/// when its latency, or the hold on its grant, has ended. In between it counts as in progress.
struct SandboxState: Sendable {
    /// A request in progress.
    struct Pending: Sendable {
        let route: SandboxRequest.Route

        /// The index of its grant, if it names one.
        let grant: Int?

        /// The number of resets at its arrival: an index is only valid if there was no reset since.
        let resetCount: Int

        let delay: Duration
    }

    /// The outcome of a request.
    enum Outcome: Sendable {
        case reply(ServerReply, label: String)

        /// No answer until the client disconnects or a minute has passed.
        case hang
    }

    var settings = SandboxSettings()
    var grants: [SandboxGrant] = []
    var indexByRefreshToken: [String: Int] = [:]
    var indicesBySub: [String: [Int]] = [:]
    var codes: [String: SandboxCode] = [:]
    var nonces = SandboxNonces()
    /// The proofs that were accepted, each by its key and its id.
    var usedProofIDs: Set<String> = []
    var statistics = SandboxStatistics()
    var issued: UInt64 = 0
    private(set) var random: any RandomSource
    private let systemRandom: any RandomSource

    /// Makes access tokens from before a reset, or from another run, invalid.
    private(set) var tokenKey: UInt64
    private(set) var resetCount = 0

    init(random: any RandomSource) {
        systemRandom = random
        self.random = random
        tokenKey = random.nextBits()
    }

    /// Clears everything.
    mutating func reset() {
        let next = resetCount + 1
        self = SandboxState(random: systemRandom)
        resetCount = next
    }

    /// Changes the settings. A seed restarts the random numbers.
    mutating func apply(_ change: OrderedJSON) throws(ControlError) {
        try settings.apply(change)
        if change["seed"] != nil { random = SeededRandom(seed: settings.seed) }
    }

    /// Records a new request.
    mutating func begin(_ request: SandboxRequest) -> Pending {
        statistics.requests += 1
        statistics.byRoute[request.route.rawValue, default: 0] += 1
        var index: Int?
        if request.route == .token {
            statistics.inFlight += 1
            statistics.maximumInFlight = max(statistics.maximumInFlight, statistics.inFlight)
            index = grantIndex(of: request)
            if hasUnexpectedField(request, grant: index) { statistics.unexpectedFields += 1 }
        }
        if let index {
            grants[index].requests += 1
            if grants[index].inFlight > 0 { statistics.concurrentSameGrant += 1 }
            grants[index].inFlight += 1
        }
        let jitter = settings.latencyJitter == .zero ? .zero : settings.latencyJitter * random.nextUnit()
        let latency = index.flatMap { grants[$0].latency } ?? settings.latency
        return Pending(route: request.route, grant: index, resetCount: resetCount, delay: latency + jitter)
    }

    private func grantIndex(of request: SandboxRequest) -> Int? {
        if let token = request.field("refresh_token"), let index = indexByRefreshToken[token] { return index }
        if let code = request.field("code") { return codes[code]?.grant }
        return nil
    }

    /// `true` if a token request has a scope, or the secret of a client without one.
    private func hasUnexpectedField(_ request: SandboxRequest, grant index: Int?) -> Bool {
        if request.field("scope") != nil { return true }
        guard request.field("client_secret") != nil, request.field("grant_type") != "authorization_code" else {
            return false
        }
        guard let index else { return true }
        return grants[index].clientSecret == nil
    }

    /// Counts a request to an unknown path.
    mutating func countUnknownRoute() {
        statistics.requests += 1
        statistics.byRoute["other", default: 0] += 1
    }

    /// `true` if the request must wait until its grant is released.
    func isOnHold(_ pending: Pending) -> Bool {
        guard let index = pending.grant, pending.resetCount == resetCount else { return false }
        return grants[index].isOnHold
    }

    /// Counts a request that starts or ends its wait for the release of its grant.
    mutating func countHold(_ pending: Pending, by change: Int) {
        if pending.resetCount == resetCount { statistics.holding += change }
    }

    /// Answers a request. The request ends unless it hangs.
    mutating func answer(_ request: SandboxRequest, for pending: Pending, now: Timestamp) -> Outcome {
        let outcome = outcome(of: request, now: now)
        if case .reply(_, let label) = outcome { end(pending, label: label) }
        return outcome
    }

    /// Records the end of a request.
    mutating func end(_ pending: Pending, label: String) {
        guard pending.route == .token, pending.resetCount == resetCount else { return }
        statistics.inFlight -= 1
        statistics.byAnswer[label, default: 0] += 1
        if let index = pending.grant { grants[index].inFlight -= 1 }
    }

    private mutating func outcome(of request: SandboxRequest, now: Timestamp) -> Outcome {
        if let outage = settings.outage, let outcome = immediateOutcome(of: outage) { return outcome }
        switch request.route {
        case .token: return token(request, now: now)
        case .userinfo: return userinfo(request, now: now)
        case .tokeninfo: return tokeninfo(request, now: now)
        case .revoke: return revoke(request, now: now)
        }
    }

    /// Returns the outcome of a fault for any request, or `nil` if the request must first be processed normally.
    func immediateOutcome(of fault: SandboxFault) -> Outcome? {
        switch fault {
        case .answer(let answer): .reply(.respond(response(answer)), label: answer.label)
        case .reset: .reply(.drop, label: fault.label)
        case .hang: .hang
        case .lostAnswer, .withoutAccessToken: nil
        }
    }

    func refusal(_ answer: FixedAnswer) -> Outcome { .reply(.respond(response(answer)), label: answer.label) }

    func success(_ body: OrderedJSON) -> Outcome {
        .reply(.respond(response(FixedAnswer(200, body: Array(body.text.utf8)))), label: "ok")
    }

    /// Makes an answer with the headers that Google's endpoint sends (https://github.com/apache/opendal/issues/3901).
    private func response(_ answer: FixedAnswer) -> ServerResponse {
        var headers: [ServerRequest.Field] = [
            ("Cache-Control", "no-cache, no-store, max-age=0, must-revalidate"),
            ("Pragma", "no-cache"),
            ("Expires", "Mon, 01 Jan 1990 00:00:00 GMT"),
            ("Content-Type", answer.contentType),
            ("Vary", "Origin, X-Origin, Referer"),
            ("Server", "scaffolding on HTTPServer2"),
        ]
        headers += answer.headers.map { ($0.name, $0.value) }
        if let wait = retryAfter(of: answer) { headers.append(("Retry-After", String(wait))) }
        return ServerResponse(status: answer.status, headers: headers, body: answer.body)
    }
}

extension SandboxState {
    private func retryAfter(of answer: FixedAnswer) -> Int64? {
        let isThrottling = answer.status == 429 || answer.status == 503
        if isThrottling, let retryAfter = settings.retryAfter { return retryAfter }
        return answer.retryAfter
    }
}

/// A parsed request to one of Google's endpoints.
struct SandboxRequest: Sendable {
    enum Route: String, Sendable {
        case token, userinfo, tokeninfo, revoke
    }

    let route: Route
    /// Whether a userinfo response has the names of the API oauth2:v2, `id` and `verified_email`. Otherwise it has
    /// those of OpenID Connect, `sub` and `email_verified`.
    private(set) var isVersion2 = false

    /// The fields of the form, and for tokeninfo also those of the query.
    var fields: [ServerRequest.Field] = []

    /// The token of the Authorization header.
    var bearer: String?
    /// The proof in the DPoP header.
    var proof: String?
    /// The Host header, as it names this server in the URL of a proof.
    var host: String?

    func field(_ name: String) -> String? {
        fields.first { $0.name == name }?.value
    }

    /// Parses a request, and returns `nil` if Google has no such method and path, which it answers with 404.
    init?(_ request: ServerRequest) {
        switch (request.method, request.path) {
        case ("POST", "/token"):
            route = .token
            fields = request.form
        case ("POST", "/revoke"):
            route = .revoke
            // Google's own examples put the token into the query of the POST (protocols/oauth2/native-app#tokenrevoke).
            fields = request.form + request.query
        case ("GET", "/tokeninfo"), ("POST", "/tokeninfo"):
            route = .tokeninfo
            fields = request.query + request.form
        case ("GET", "/oauth2/v2/userinfo"), ("GET", "/userinfo/v2/me"):
            route = .userinfo
            isVersion2 = true
        case ("GET", "/oauth2/v3/userinfo"), ("GET", "/v1/userinfo"):
            route = .userinfo
        default:
            return nil
        }
        bearer = BearerToken(of: request).text
        proof = request.header("DPoP")
        host = request.header("Host")
    }
}
