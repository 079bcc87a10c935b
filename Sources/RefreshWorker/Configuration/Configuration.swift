import Base
import GoogleOAuth
import HTTPClient
import HTTPServer
import Routes
import Storage
import Telemetry

/// The configuration: every setting, checked and typed, from flags, environment, file and defaults.
///
/// The variables are the settings that a reload applies.
struct Configuration: Equatable, Sendable {
    /// The configuration file, if one was named or found.
    let configurationFile: String?
    let database: DatabaseLocation
    let keyFile: String
    /// The key ring of the running service, for a command beside it that cannot read `keyFile`.
    let serviceKeyRing: String?
    /// The configured client ids in order, without duplicates.
    ///
    /// There might be none, because a grant can carry its own.
    var clientIDs: [String]
    var clientSecretFile: String?
    /// The client that exchanges the app's codes, if there is one.
    var serverClientID: String?
    let endpoints: GoogleEndpoints
    let caFile: String?
    let metricsLog: LineDestination
    /// One of this many plain successes is logged, or none if it is 0.
    var logSample: Int
    var logLevel: LogLevel
    /// The limit of requests per second for one client id.
    var maxRate: Double
    let summaryInterval: Duration
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
        clientIDs = resolver.clientIDs()
        clientSecretFile = resolver.optional(.clientSecretFile, SettingValue.text)
        serverClientID = resolver.optional(.serverClientID, InputText.clientID)
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

    /// Returns the flags of the settings that differ and that a reload does not apply.
    func settingsThatNeedRestart(comparedWith running: Configuration) -> [String] {
        Setting.all.filter { $0.change.reloadGroup == nil && $0.change.differs(self, running) }.map(\.flag)
    }

    /// Returns this configuration with the values of another for the settings that a reload applies.
    func reloaded(from latest: Configuration) -> Configuration {
        var result = self
        for setting in Setting.all { setting.change.apply(latest, &result) }
        return result
    }
}

extension Configuration {
    /// Checks that the settings which the listeners and the notices need are given.
    ///
    /// Only the daemon calls this: other commands read the same file, but systemd does not pass them credentials.
    func checkServing(environment: [String: String]) throws(CommandError) {
        if let error = CommandError(servingProblems(environment: environment)) { throw error }
    }

    /// `true` if a listener gets tokens of the app: from the app itself, or from services of its users.
    var verifiesAppTokens: Bool { publicListener != nil || !internalListeners.isEmpty && servicesFile != nil }

    func hasAppSecret(environment: [String: String]) -> Bool {
        jwtSecretFile != nil || environment[Setting.jwtSecretName]?.isEmpty == false
    }

    /// Returns a problem for each need that is not met.
    func servingProblems(environment: [String: String]) -> [Setting.Problem] {
        let isPublic = publicListener != nil
        let needs: [(isUnmet: Bool, name: Setting.Name, need: String)] = [
            (
                isPublic && appKeys.isEmpty && !hasAppSecret(environment: environment), .listen,
                """
                --jwt-secret-file, or the variable \(Setting.jwtSecretName): the secret of the app's own tokens. \
                'openssl rand -hex 32' prints a new one; a backend that is being replaced has one already. Or --app-keys, for \
                tokens of a login such as Firebase
                """
            ),
            (
                !appKeys.isEmpty && appIssuer == nil && appAudience == nil, .appKeys,
                """
                --app-issuer or --app-audience, because a login such as Firebase signs the tokens of other people's apps \
                with the same keys
                """
            ),
            (isPublic && clientIDs.isEmpty, .listen, "--client-id: only tokens of these clients are accepted"),
            (
                serverClientID != nil && clientSecretFile == nil, .serverClientID,
                """
                --client-secret-file: a file with a line of this client id, a blank and its secret, which Google wants with \
                each code. The Google Cloud console shows it at the client of your server
                """
            ),
            (noticeURL != nil && noticeSecretFile == nil, .noticeURL, "--notice-secret-file: notices are signed"),
            (internalCertificateFile != nil && internalKeyFile == nil, .internalCertificate, "--internal-key: its key"),
            (
                internalKeyFile != nil && internalCertificateFile == nil, .internalKey,
                "--internal-certificate: the certificate that it belongs to"
            ),
        ]
        var problems = needs.filter(\.isUnmet).map { unmet in
            Setting.Problem(origin: "--\(unmet.name.rawValue)", message: "needs \(unmet.need)")
        }
        let internalAddresses = internalListeners.compactMap { if case .own(let address) = $0 { address } else { nil } }
        problems += internalAddresses.compactMap(internalTLSProblem).map { problem in
            Setting.Problem(origin: "--listen-internal", message: problem)
        }
        return problems
    }

    /// Returns the reason why the internal listener must not use this address, with TLS or without, or `nil` if it can.
    ///
    /// A socket from systemd is known only after systemd passes it. Beside another address, a certificate might be for
    /// that one, and a unix socket is served without TLS.
    func internalTLSProblem(at address: ListenAddress) -> String? {
        switch (address.reach, internalCertificateFile != nil) {
        case (.unixSocket, true) where internalListeners.count > 1 && !internalListeners.allSatisfy(\.isUnixSocket): nil
        case (.network, false):
            """
            \(address) can be reached from other machines, and tokens must not cross a network in the clear: either let the \
            listener serve TLS with --internal-certificate and --internal-key, or let it listen on unix:PATH and put nginx \
            in front of that (docs/services.md)
            """
        case (.unixSocket, true):
            """
            \(address) is a unix socket, which needs no TLS: leave --internal-certificate and --internal-key out, or listen \
            on ADDRESS:PORT
            """
        case (.network, true), (.thisMachine, _), (.unixSocket, false): nil
        }
    }
}

extension Setting {
    /// One mistake and its origin.
    struct Problem: Equatable, Sendable {
        /// The origin of the mistake: a flag, a variable, `file:line` or a credential.
        let origin: String
        let message: String
        /// `true` if a file could not be read for a reason that might pass.
        var mayPass = false
    }
}

extension CommandError {
    /// Reports all problems of the configuration, so that they can be fixed in one go: a line each, without secrets.
    ///
    /// After a file that could not be read for now, the settings that are missing might be in it.
    init?(_ problems: [Setting.Problem]) {
        guard !problems.isEmpty else { return nil }
        self.init(
            problems.contains(where: \.mayPass) ? .inputOutput : .configuration,
            problems.map { "\($0.origin): \($0.message)" }.joined(separator: "\n")
        )
    }
}
