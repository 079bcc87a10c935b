import GoogleOAuth
import Store

extension Configuration {
    /// Makes the configuration from flags, environment and file, or throws all their problems.
    ///
    /// Every given value is checked, even one that a layer of higher precedence overrides. Otherwise a mistake in the
    /// file would show only when a flag is removed.
    package static func resolve(_ inputs: ConfigurationInputs) throws(ConfigurationError) -> Configuration {
        var resolver = ConfigurationResolver(inputs)
        let database = resolver.database()
        let keyFile = resolver.value(of: .keyFile, SettingValue.path, insteadOfDefault: resolver.credential("key-ring"))
        let clientIDs = resolver.clientIDs()
        let clientSecretFile = resolver.optional(.clientSecretFile, SettingValue.path)
        let token = resolver.value(of: .tokenEndpoint, SettingValue.endpoint)
        let userinfo = resolver.value(of: .userinfoEndpoint, SettingValue.endpoint)
        let tokeninfo = resolver.value(of: .tokeninfoEndpoint, SettingValue.endpoint)
        let revocation = resolver.value(of: .revocationEndpoint, SettingValue.endpoint)
        let caFile = resolver.optional(.caFile, SettingValue.path)
        let metricsLog = resolver.value(of: .metricsLog, SettingValue.metricsLog)
        let logLevel = resolver.value(of: .logLevel, SettingValue.logLevel)
        let maxRate = resolver.value(of: .maxRate, SettingValue.rate)
        let summaryInterval = resolver.value(of: .summaryInterval) { text throws(SettingValue.Refusal) in
            try SettingValue.seconds(text, in: 1...86_400)
        }
        let stopDeadline = resolver.value(of: .stopDeadline) { text throws(SettingValue.Refusal) in
            try SettingValue.seconds(text, in: 1...3600)
        }
        let runsOnce = resolver.value(of: .runOnce, SettingValue.switched)
        let publicListener = resolver.optional(.listen, SettingValue.publicPlace)
        let internalListener = resolver.optional(.listenInternal, SettingValue.internalPlace)
        let socketMode = resolver.value(of: .socketMode, SettingValue.socketMode)
        let proxies = resolver.list(.trustedProxy, SettingValue.networks)
        let googleCallsPerMinute = resolver.value(of: .googleCallsPerMinute) { text throws(SettingValue.Refusal) in
            try SettingValue.count(text, in: 1...100_000)
        }
        let emailLinking = resolver.value(of: .linkByEmail, SettingValue.emailLinking)
        let jwtSecretFile = resolver.optional(.jwtSecretFile, SettingValue.path) ?? resolver.credential("jwt-secret")
        let sessionGrace = resolver.value(of: .sessionGrace) { text throws(SettingValue.Refusal) in
            try SettingValue.seconds(text, in: 1...Int(Session.longestGrace.components.seconds))
        }
        let acceptFormer = resolver.optional(.acceptFormerRefreshTokensUntil, SettingValue.date)
        let servicesFile = resolver.optional(.servicesFile, SettingValue.path) ?? resolver.credential("services")
        let internalCertificateFile = resolver.optional(.internalCertificate, SettingValue.path)
        let internalKeyFile = resolver.optional(.internalKey, SettingValue.path)
        let servesInternalMetrics = resolver.value(of: .internalMetrics, SettingValue.switched)
        let securityEvents = resolver.value(of: .securityEventsEndpoint, SettingValue.endpoint)
        let noticeURL = resolver.optional(.noticeURL, SettingValue.endpoint)
        let noticeSecretFile =
            resolver.optional(.noticeSecretFile, SettingValue.path) ?? resolver.credential("notice-secret")
        // A value is missing only if a problem was recorded.
        guard resolver.problems.isEmpty, let database, let keyFile, let token, let userinfo, let tokeninfo,
            let revocation, let metricsLog, let logLevel, let maxRate, let summaryInterval, let stopDeadline,
            let runsOnce, let socketMode, let googleCallsPerMinute, let emailLinking, let sessionGrace,
            let servesInternalMetrics,
            let securityEvents
        else { throw ConfigurationError(problems: resolver.problems) }
        return Configuration(
            configurationFile: resolver.file,
            database: database,
            keyFile: keyFile,
            clientIDs: clientIDs,
            clientSecretFile: clientSecretFile,
            endpoints: Endpoints(token: token, userinfo: userinfo, tokeninfo: tokeninfo, revocation: revocation),
            caFile: caFile,
            metricsLog: metricsLog,
            logLevel: logLevel,
            maxRate: maxRate,
            summaryInterval: summaryInterval,
            stopDeadline: stopDeadline,
            runsOnce: runsOnce,
            publicListener: publicListener,
            internalListener: internalListener,
            socketMode: socketMode,
            trustedProxies: proxies,
            googleCallsPerMinute: googleCallsPerMinute,
            emailLinking: emailLinking,
            jwtSecretFile: jwtSecretFile,
            sessionGrace: sessionGrace,
            acceptFormerRefreshTokensUntil: acceptFormer,
            servicesFile: servicesFile,
            internalCertificateFile: internalCertificateFile,
            internalKeyFile: internalKeyFile,
            servesInternalMetrics: servesInternalMetrics,
            securityEventsEndpoint: securityEvents,
            noticeURL: noticeURL,
            noticeSecretFile: noticeSecretFile
        )
    }
}
