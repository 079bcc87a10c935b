import HTTPServer

extension Configuration {
    /// Checks that the settings which the listeners and the notices need are given.
    ///
    /// Only the daemon calls this: other commands read the same file, but systemd does not pass them credentials.
    func checkServing(environment: [String: String]) throws(CommandError) {
        if let error = CommandError(servingProblems(environment: environment)) { throw error }
    }

    /// `true` if the app's routes are served.
    var servesApp: Bool { publicListener != nil }

    /// `true` if services get tokens.
    var vendsTokens: Bool { !internalListeners.isEmpty && servicesFile != nil }

    /// `true` if a listener gets tokens of the app: from the app itself, or from services of its users.
    var verifiesAppTokens: Bool { servesApp || vendsTokens }

    func hasAppSecret(environment: [String: String]) -> Bool {
        jwtSecretFile != nil || environment[Setting.jwtSecretName]?.isEmpty == false
    }

    /// Returns a problem for each need that is not met.
    func servingProblems(environment: [String: String]) -> [Setting.Problem] {
        var problems: [Setting.Problem] = []
        func report(_ name: Setting.Name, needs need: String) {
            problems.append(Setting.Problem(origin: "--\(name.rawValue)", message: "needs \(need)"))
        }
        if servesApp, appKeys.isEmpty, !hasAppSecret(environment: environment) {
            report(
                .listen,
                needs: """
                    --jwt-secret-file, or the variable \(Setting.jwtSecretName): the secret of the app's own tokens. \
                    'openssl rand -hex 32' prints a new one; a backend that is being replaced has one already. Or \
                    --app-keys, for tokens of a login such as Firebase
                    """
            )
        }
        if !appKeys.isEmpty, appIssuer == nil, appAudience == nil {
            report(
                .appKeys,
                needs: """
                    --app-issuer or --app-audience, because a login such as Firebase signs the tokens of other people's \
                    apps with the same keys
                    """
            )
        }
        if servesApp, clientIDs.isEmpty {
            report(.listen, needs: "--client-id: only tokens of these clients are accepted")
        }
        if serverClientID != nil, clientSecretFile == nil {
            report(
                .serverClientID,
                needs: """
                    --client-secret-file: a file with a line of this client id, a blank and its secret, which Google \
                    wants with each code. The Google Cloud console shows it at the client of your server
                    """
            )
        }
        if bindsTokens, serverClientID == nil {
            report(
                .bindTokens,
                needs: "--server-client-id: only the refresh tokens of codes that the worker exchanges can be bound"
            )
        }
        if noticeURL != nil, noticeSecretFile == nil {
            report(.noticeURL, needs: "--notice-secret-file: notices are signed")
        }
        if internalCertificateFile != nil, internalKeyFile == nil {
            report(.internalCertificate, needs: "--internal-key: its key")
        }
        if internalKeyFile != nil, internalCertificateFile == nil {
            report(.internalKey, needs: "--internal-certificate: the certificate that it belongs to")
        }
        for case .own(let address) in internalListeners {
            guard let problem = internalTLSProblem(at: address) else { continue }
            problems.append(Setting.Problem(origin: "--listen-internal", message: problem))
        }
        return problems
    }

    /// Returns the reason why the internal listener must not use this address, with TLS or without, or `nil` if it can.
    ///
    /// A socket from systemd is known only after systemd passes it.
    func internalTLSProblem(at address: ListenAddress) -> String? {
        let hasTLS = internalCertificateFile != nil
        switch address.reach {
        case .thisMachine: return nil
        case .network:
            guard !hasTLS else { return nil }
            return """
                \(address) can be reached from other machines, and tokens must not cross a network in the clear: either \
                let the listener serve TLS with --internal-certificate and --internal-key, or let it listen on unix:PATH \
                and put nginx in front of that (docs/services.md)
                """
        case .unixSocket:
            // A unix socket is served without TLS. Beside another address, the certificate might be for that one.
            let hasOtherAddress = internalListeners.count > 1 && !internalListeners.allSatisfy(\.isUnixSocket)
            guard hasTLS, !hasOtherAddress else { return nil }
            return """
                \(address) is a unix socket, which needs no TLS: leave --internal-certificate and --internal-key out, or \
                listen on ADDRESS:PORT
                """
        }
    }
}
