@testable import RefreshWorker

/// A valid value of a setting other than its default, and its effect on a running worker.
struct SettingSample: Sendable {
    /// The value, in which ROOT is the folder of a fixture.
    let given: String
    /// A text that ``StartedWorker/uses(_:)`` contains only with this value, or the error of a start that needs a file.
    let seen: String
    /// The other settings that the effect needs, on top of those of every fixture.
    let others: [Setting.Name: String]

    init(_ given: String, seen: String? = nil, with others: [Setting.Name: String] = [:]) {
        self.given = given
        self.seen = seen ?? given
        self.others = others
    }

    private static let internalListener: [Setting.Name: String] = [
        .listenInternal: "unix:ROOT/internal.sock", .servicesFile: "ROOT/services",
    ]
    private static let certificate: [Setting.Name: String] = [
        .listenInternal: "127.0.0.1:0", .servicesFile: "ROOT/services", .internalCertificate: "ROOT/pem",
        .internalKey: "ROOT/pem",
    ]

    /// A sample of each setting; without one, a new setting does not compile.
    static func of(_ name: Setting.Name) -> SettingSample {
        switch name {
        case .config: SettingSample("ROOT/other.conf", seen: "77.0")
        case .database: SettingSample("ROOT/other.sqlite")
        case .keyFile: SettingSample("ROOT/missing")
        case .keyCommand: SettingSample("ROOT/missing")
        case .keyWrapCommand: SettingSample("ROOT/missing", with: [.keyCommand: "cat"])
        case .clientID: SettingSample("1234-other.apps.googleusercontent.com")
        case .clientSecretFile: SettingSample("ROOT/client-secret", seen: "the-secret-of-the-client")
        case .serverClientID:
            SettingSample("1234-server.apps.googleusercontent.com", with: [.clientSecretFile: "ROOT/server-secret"])
        case .bindTokens:
            SettingSample(
                "yes",
                seen: "true",
                with: [
                    .serverClientID: "1234-server.apps.googleusercontent.com",
                    .clientSecretFile: "ROOT/server-secret",
                ]
            )
        case .tokenEndpoint: SettingSample("https://token.example/")
        case .userinfoEndpoint: SettingSample("https://userinfo.example/")
        case .tokeninfoEndpoint: SettingSample("https://tokeninfo.example/")
        case .revocationEndpoint: SettingSample("https://revocation.example/")
        case .caFile: SettingSample("ROOT/pem")
        case .metricsLog: SettingSample("ROOT/other.jsonl")
        case .logSample: SettingSample("refresh.succeeded=7", seen: "7")
        case .logLevel: SettingSample("warning")
        case .maxRate: SettingSample("7", seen: "7.0")
        case .summaryInterval: SettingSample("7", seen: "7.0")
        case .otlpEndpoint: SettingSample("https://collector.example/", seen: "https://collector.example/v1/metrics")
        case .stopDeadline: SettingSample("7", seen: "7.0")
        case .forgetEndedAfter: SettingSample("7", seen: "604800.0")
        case .runOnce: SettingSample("yes", seen: "true")
        case .listen: SettingSample("127.0.0.1:0", seen: "listens")
        case .listenInternal:
            SettingSample("unix:ROOT/other.sock", seen: "ROOT/other.sock", with: [.servicesFile: "ROOT/services"])
        case .internalCertificate: SettingSample("ROOT/missing", with: Self.certificate)
        case .internalKey: SettingSample("ROOT/missing", with: Self.certificate)
        case .internalMetrics:
            SettingSample(
                "yes",
                seen: "servesMetrics: true",
                with: [.internalCertificate: "ROOT/pem", .internalKey: "ROOT/pem"]
            )
        case .socketMode: SettingSample("0600", seen: "600", with: Self.internalListener)
        case .trustedProxy: SettingSample("10.0.0.1", seen: "1 proxy", with: [.listen: "127.0.0.1:0"])
        case .googleCallsPerMinute: SettingSample("6", seen: "one every 10 s")
        case .connectionsPerUser: SettingSample("3")
        case .linkByEmail: SettingSample("any")
        case .jwtSecretFile: SettingSample("ROOT/missing", with: [.listen: "127.0.0.1:0"])
        case .appKeys:
            SettingSample("https://login.example/keys", with: [.listen: "127.0.0.1:0", .appAudience: "my-app"])
        case .appIssuer: SettingSample("https://login.example/")
        case .appAudience: SettingSample("my-app")
        case .appUserClaim: SettingSample("uid")
        case .sessionGrace: SettingSample("7", seen: "7.0")
        case .acceptFormerRefreshTokensUntil: SettingSample("2027-03-31", seen: "1806451200000")
        case .servicesFile: SettingSample("ROOT/missing", with: Self.internalListener)
        case .securityEventsEndpoint: SettingSample("https://events.example/")
        case .googleKeysEndpoint: SettingSample("https://keys.example/")
        case .noticeURL: SettingSample("https://notices.example/", with: [.noticeSecretFile: "ROOT/secret"])
        case .expiryNotice:
            SettingSample(
                "7",
                seen: "604800.0",
                with: [.noticeURL: "https://notices.example/", .noticeSecretFile: "ROOT/secret"]
            )
        case .noticeSecretFile: SettingSample("ROOT/missing", with: [.noticeURL: "https://notices.example/"])
        }
    }
}
