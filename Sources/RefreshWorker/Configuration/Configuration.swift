import Base
import GoogleOAuth
import HTTPClient
import HTTPServer
import Routes
import Storage
import Telemetry

/// The configuration: every setting, checked and typed, from flags, environment, file and defaults.
///
/// A reload replaces the `var` properties. The `let` properties need a restart.
struct Configuration: Equatable, Sendable {
    /// The configuration file, if one was named or found.
    let configurationFile: String?
    let database: DatabaseLocation
    let keyFile: String
    /// Prints the key ring, if `keyFile` does not hold it in plain text.
    let keyCommand: ExternalCommand?
    /// Prints the content of `keyFile` for a changed key ring.
    let keyWrapCommand: ExternalCommand?
    /// The key ring of the running service, for a command beside it that cannot read `keyFile`.
    let serviceKeyRing: String?
    /// The configured client ids in order, without duplicates. There might be none, because a grant can carry its own.
    var clientIDs: [String]
    var clientSecretFile: String?
    /// The client that exchanges the app's codes, if there is one.
    var serverClientID: String?
    /// `true` if the refresh tokens of exchanged codes are bound to a key.
    let bindsTokens: Bool
    let endpoints: GoogleEndpoints
    let caFile: String?
    let metricsLog: LineDestination
    /// Logs every nth plain success. 0 logs none.
    var logSample: Int
    var logLevel: LogLevel
    /// The limit of requests per second for one client id.
    var maxRate: Double
    let summaryInterval: Duration
    /// The collector of metrics and spans, if the worker's own setting names one.
    let otlpEndpoint: Endpoint?
    let stopDeadline: Duration
    /// The time after its end at which a grant is forgotten, or `nil` if ended grants are kept.
    let forgetEndedAfter: Duration?
    let runsOnce: Bool
    /// The location of the public listener, or `nil` if the app's routes are not served.
    let publicListener: ListenerLocation?
    /// The locations of the internal listener, or none if tokens are not vended.
    let internalListeners: [ListenerLocation]
    let socketMode: UInt32
    /// The addresses or networks of trusted proxies.
    let trustedProxies: [String]
    /// The number of times per minute that one address can fail to sign in or to connect.
    let googleCallsPerMinute: Int
    let connectionsPerUser: Int
    let emailLinking: EmailLinking
    let jwtSecretFile: String?
    /// The keys of the login that signs the app's tokens.
    let appKeys: [KeyLocation]
    let appIssuer: String?
    let appAudience: String?
    let appUserClaim: String
    /// The time in which any refresh token of a session is answered with the current tokens.
    let sessionGrace: Duration
    /// The end of the time in which refresh tokens of the former backend begin a session.
    let acceptFormerRefreshTokensUntil: Timestamp?
    let servicesFile: String?
    /// The certificate of the internal listener, if it serves TLS.
    let internalCertificateFile: String?
    let internalKeyFile: String?
    /// `true` if /metrics is served over TLS.
    let servesInternalMetrics: Bool
    let securityEventsEndpoint: Endpoint
    /// The keys of Google's ID tokens.
    let googleKeysEndpoint: Endpoint
    let noticeURL: Endpoint?
    let noticeSecretFile: String?
    /// The time before the end of a refresh token at which the backend is notified, or zero for never.
    let expiryNotice: Duration

    /// Makes the configuration from flags, environment and file, or throws all their problems.
    ///
    /// Every given value is checked, even one that a layer of higher precedence overrides. Otherwise a mistake in the
    /// file would show only when a flag is removed.
    init(_ inputs: ConfigurationInputs) throws(CommandError) {
        var resolver = ConfigurationResolver(inputs)
        configurationFile = resolver.file
        database = resolver.database()
        keyFile = resolver.value(of: .keyFile, SettingValue.text, insteadOfDefault: resolver.credential("key-ring"))
        serviceKeyRing = resolver.serviceKeyRing
        keyCommand = resolver.optional(.keyCommand, ExternalCommand.init)
        keyWrapCommand = resolver.optional(.keyWrapCommand, ExternalCommand.init)
        if keyWrapCommand != nil, keyCommand == nil {
            resolver.report(.keyWrapCommand, needs: "--key-command: the program that reads what this one writes")
        }
        clientIDs = resolver.clientIDs()
        clientSecretFile = resolver.optional(.clientSecretFile, SettingValue.text)
        serverClientID = resolver.optional(.serverClientID, InputText.clientID)
        bindsTokens = resolver.value(of: .bindTokens, SettingValue.switched)
        endpoints = GoogleEndpoints(
            token: resolver.value(of: .tokenEndpoint, SettingValue.endpoint),
            userinfo: resolver.value(of: .userinfoEndpoint, SettingValue.endpoint),
            tokeninfo: resolver.value(of: .tokeninfoEndpoint, SettingValue.endpoint),
            revocation: resolver.value(of: .revocationEndpoint, SettingValue.endpoint)
        )
        caFile = resolver.optional(.caFile, SettingValue.text)
        metricsLog = resolver.value(of: .metricsLog, SettingValue.metricsLog)
        logSample = resolver.value(of: .logSample, SettingValue.logSample)
        logLevel = resolver.value(of: .logLevel, SettingValue.word)
        maxRate = resolver.value(of: .maxRate, SettingValue.rate)
        summaryInterval = resolver.seconds(.summaryInterval, in: 1...86_400)
        otlpEndpoint = resolver.optional(.otlpEndpoint, SettingValue.baseEndpoint)
        stopDeadline = resolver.seconds(.stopDeadline, in: 1...3600)
        forgetEndedAfter = resolver.optional(.forgetEndedAfter) { text throws(InputError) in
            try SettingValue.days(text, in: 1...3650)
        }
        runsOnce = resolver.value(of: .runOnce, SettingValue.switched)
        publicListener = resolver.optional(.listen, SettingValue.publicLocation)
        internalListeners = resolver.list(.listenInternal, SettingValue.internalLocations).reduce(into: []) {
            if !$0.contains($1) { $0.append($1) }
        }
        socketMode = resolver.value(of: .socketMode, SettingValue.socketMode)
        trustedProxies = resolver.list(.trustedProxy, SettingValue.networks)
        googleCallsPerMinute = resolver.value(of: .googleCallsPerMinute) { text throws(InputError) in
            try SettingValue.count(text, in: 1...100_000)
        }
        connectionsPerUser = resolver.value(of: .connectionsPerUser) { text throws(InputError) in
            try SettingValue.count(text, in: 1...100)
        }
        emailLinking = resolver.value(of: .linkByEmail, SettingValue.word)
        jwtSecretFile = resolver.optional(.jwtSecretFile, SettingValue.text) ?? resolver.credential("jwt-secret")
        appKeys = resolver.list(.appKeys, SettingValue.keyLocations)
        appIssuer = resolver.optional(.appIssuer, SettingValue.text)
        appAudience = resolver.optional(.appAudience, SettingValue.text)
        appUserClaim = resolver.value(of: .appUserClaim, SettingValue.text)
        sessionGrace = resolver.seconds(.sessionGrace, in: 1...Int(Session.maximumGrace.components.seconds))
        acceptFormerRefreshTokensUntil = resolver.optional(.acceptFormerRefreshTokensUntil, SettingValue.date)
        servicesFile = resolver.optional(.servicesFile, SettingValue.text) ?? resolver.credential("services")
        internalCertificateFile = resolver.optional(.internalCertificate, SettingValue.text)
        internalKeyFile = resolver.optional(.internalKey, SettingValue.text)
        servesInternalMetrics = resolver.value(of: .internalMetrics, SettingValue.switched)
        securityEventsEndpoint = resolver.value(of: .securityEventsEndpoint, SettingValue.endpoint)
        googleKeysEndpoint = resolver.value(of: .googleKeysEndpoint, SettingValue.endpoint)
        noticeURL = resolver.optional(.noticeURL, SettingValue.endpoint)
        noticeSecretFile =
            resolver.optional(.noticeSecretFile, SettingValue.text) ?? resolver.credential("notice-secret")
        expiryNotice = resolver.value(of: .expiryNotice) { text throws(InputError) in
            try SettingValue.days(text, in: 0...30)
        }
        if let error = CommandError(resolver.problems) { throw error }
    }
}

extension Configuration {
    /// The client ids of the app and of the server, without duplicates.
    var allClientIDs: [String] {
        guard let serverClientID, !clientIDs.contains(serverClientID) else { return clientIDs }
        return clientIDs + [serverClientID]
    }
}
