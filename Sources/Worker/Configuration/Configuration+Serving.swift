package import HTTPServer

extension Configuration {
    /// Checks that the settings which the listeners and the notices need are given.
    ///
    /// Only the daemon calls this: other commands read the same file, but systemd does not pass them credentials.
    package func checkServing(environment: [String: String]) throws(ConfigurationError) {
        let hasSecret = jwtSecretFile != nil || environment[Setting.jwtSecretName] != nil
        let isPublic = publicListener != nil
        let needs: [(isUnmet: Bool, name: Setting.Name, need: String)] = [
            (
                isPublic && !hasSecret, .listen,
                """
                --jwt-secret-file, or the variable \(Setting.jwtSecretName): the secret of the app's own tokens. \
                'openssl rand -hex 32' prints a new one; a backend that is being replaced has one already
                """
            ),
            (isPublic && clientIDs.isEmpty, .listen, "--client-id: only tokens of these clients are accepted"),
            (noticeURL != nil && noticeSecretFile == nil, .noticeURL, "--notice-secret-file: notices are signed"),
            (internalCertificateFile != nil && internalKeyFile == nil, .internalCertificate, "--internal-key: its key"),
            (
                internalKeyFile != nil && internalCertificateFile == nil, .internalKey,
                "--internal-certificate: the certificate that it belongs to"
            ),
        ]
        var problems = needs.filter(\.isUnmet).map { unmet in
            ConfigurationError.Problem(origin: "--\(unmet.name.rawValue)", message: "needs \(unmet.need)")
        }
        if case .own(let address) = internalListener, let problem = internalTLSProblem(at: address) {
            problems.append(ConfigurationError.Problem(origin: "--listen-internal", message: problem))
        }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    }

    /// Returns the reason why the internal listener must not use this address, with TLS or without; `nil` if it may.
    ///
    /// A socket from systemd is known only after systemd passes it.
    package func internalTLSProblem(at address: ListenAddress) -> String? {
        switch (address.reach, internalCertificateFile != nil) {
        case (.network, false):
            """
            \(address) can be reached from other machines, and tokens must not cross a network in the clear: either let the \
            listener serve TLS with --internal-certificate and --internal-key, or let it listen on unix:PATH and put nginx \
            in front of that (docs/vending.md)
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
