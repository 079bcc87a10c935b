import HTTPServer

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
