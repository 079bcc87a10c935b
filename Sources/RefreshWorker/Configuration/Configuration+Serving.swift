extension Configuration {
    /// Checks that what listens and tells has what it needs.
    ///
    /// Only the daemon asks: the other commands read the same file where systemd has handed them no credentials.
    func checkServing(environment: [String: String]) throws(ConfigurationError) {
        let hasSecret = jwtSecretFile != nil || environment[Setting.jwtSecretName] != nil
        let isPublic = publicListener != nil
        let needs: [(isUnmet: Bool, name: Setting.Name, need: String)] = [
            (isPublic && !hasSecret, .listen, "--jwt-secret-file: the secret of the app's own tokens"),
            (isPublic && clientIDs.isEmpty, .listen, "--client-id: only tokens of these clients are taken"),
            (internalListener != nil && servicesFile == nil, .listenInternal, "--services-file: who may have tokens"),
            (noticeURL != nil && noticeSecretFile == nil, .noticeURL, "--notice-secret-file: notices are signed"),
        ]
        let problems = needs.filter(\.isUnmet).map { unmet in
            ConfigurationError.Problem(origin: "--\(unmet.name.rawValue)", message: "needs \(unmet.need)")
        }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    }
}
