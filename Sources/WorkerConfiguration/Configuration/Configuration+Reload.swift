import GoogleOAuth

extension Configuration {
    /// Returns the flag names of the settings that differ and that a reload cannot change.
    package func settingsThatNeedRestart(comparedWith running: Configuration) -> [String] {
        let comparisons: [(Setting.Name, Bool)] = [
            (.database, database == running.database),
            (.keyFile, keyFile == running.keyFile),
            (.clientID, clientIDs == running.clientIDs),
            (.clientSecretFile, clientSecretFile == running.clientSecretFile),
            (.tokenEndpoint, endpoints.token == running.endpoints.token),
            (.userinfoEndpoint, endpoints.userinfo == running.endpoints.userinfo),
            (.tokeninfoEndpoint, endpoints.tokeninfo == running.endpoints.tokeninfo),
            (.revocationEndpoint, endpoints.revocation == running.endpoints.revocation),
            (.caFile, caFile == running.caFile),
            (.metricsLog, metricsLog == running.metricsLog),
            (.summaryInterval, summaryInterval == running.summaryInterval),
            (.stopDeadline, stopDeadline == running.stopDeadline),
            (.listen, publicListener == running.publicListener),
            (.listenInternal, internalListener == running.internalListener),
            (.socketMode, socketMode == running.socketMode),
            (.trustedProxy, trustedProxies == running.trustedProxies),
            (.googleCallsPerMinute, googleCallsPerMinute == running.googleCallsPerMinute),
            (.linkByEmail, emailLinking == running.emailLinking),
            (.jwtSecretFile, jwtSecretFile == running.jwtSecretFile),
            (.sessionGrace, sessionGrace == running.sessionGrace),
            (
                .acceptFormerRefreshTokensUntil,
                acceptFormerRefreshTokensUntil == running.acceptFormerRefreshTokensUntil
            ),
            (.servicesFile, servicesFile == running.servicesFile),
            (.internalCertificate, internalCertificateFile == running.internalCertificateFile),
            (.internalKey, internalKeyFile == running.internalKeyFile),
            (.internalMetrics, servesInternalMetrics == running.servesInternalMetrics),
            (.securityEventsEndpoint, securityEventsEndpoint == running.securityEventsEndpoint),
            (.noticeURL, noticeURL == running.noticeURL),
            (.noticeSecretFile, noticeSecretFile == running.noticeSecretFile),
        ]
        return comparisons.filter { !$0.1 }.map { "--" + $0.0.rawValue }
    }
}
