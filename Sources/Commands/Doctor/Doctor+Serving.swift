import Base
import HTTPServer
import Routes
import Worker

/// The checks of the files and settings that the listeners and the notices need.
extension Doctor {
    /// The folder that systemd creates for the service (`RuntimeDirectory=`).
    private static let runtimeFolder = "/run/refresh-worker"

    private var configuration: Configuration { context.configuration }

    func servingDiagnoses() -> [Diagnosis] {
        startDiagnoses
            + [appSecret, formerTokens, services, noticeSecret, proxies, emailLinking, certificate].compactMap(\.self)
            + listeners
    }

    private var appSecret: Diagnosis? {
        // Without any secret, the settings are a fault already.
        guard configuration.jwtSecretFile != nil || context.inputs.environment[Setting.jwtSecretName] != nil else {
            return nil
        }
        guard configuration.publicListener != nil || configuration.jwtSecretFile != nil else { return nil }
        let source = configuration.jwtSecretFile ?? "the variable \(Setting.jwtSecretName)"
        return check("app's token secret") { () throws in
            _ = try context.openSigner()
            return "\(source) can be used"
        }
    }

    /// Checks former refresh tokens.
    ///
    /// They are only as safe as the secret that signed them, so accepting them should end.
    private var formerTokens: Diagnosis? {
        guard configuration.publicListener != nil else { return nil }
        let subject = "former refresh tokens"
        let flag = "--\(Setting.Name.acceptFormerRefreshTokensUntil.rawValue)"
        guard let end = configuration.acceptFormerRefreshTokensUntil else {
            return .ok(subject, "refused: \(flag) accepts those of a former backend while its users move")
        }
        guard context.time.now < end else {
            return .warning(
                subject,
                "refused since \(end.iso8601Seconds)",
                advice: "remove \(flag) from the configuration"
            )
        }
        return .ok(
            subject,
            """
            accepted until \(end.iso8601Seconds): each one that the app's secret has signed and that has not expired begins \
            one session of a stored, active user; import the users before
            """
        )
    }

    private var services: Diagnosis? {
        guard let path = configuration.servicesFile else {
            guard configuration.internalListener != nil else { return nil }
            return .ok("services", "none: the internal listener vends no tokens without --services-file")
        }
        return check("services") { () throws in
            let count = try context.readServices().count
            return "\(path) names \(count == 1 ? "1 service" : "\(count) services")"
        }
    }

    private var noticeSecret: Diagnosis? {
        guard let path = configuration.noticeSecretFile else { return nil }
        return check("notice secret") { () throws in
            _ = try context.openNoticeKey()
            return "\(path) can be used"
        }
    }

    private var certificate: Diagnosis? {
        guard let path = configuration.internalCertificateFile else { return nil }
        let subject = "internal certificate"
        do {
            // Without a key, the settings are a fault already.
            guard let certificate = try context.readInternalCertificate() else { return nil }
            guard let concern = CertificateProblem(certificate, at: context.time.now) else {
                return .ok(subject, "\(path) is valid until \(certificate.expiresAt.iso8601Seconds)")
            }
            return .warning(subject, concern.sentence(about: path))
        } catch {
            return .fault(subject, "\(error)")
        }
    }

    /// Runs a check.
    ///
    /// Its error already says how to fix the problem.
    func check(_ subject: String, _ body: () throws -> String) -> Diagnosis {
        do {
            return .ok(subject, try body())
        } catch {
            return .fault(subject, "\(error)")
        }
    }

    /// Warns about missing trusted proxies.
    ///
    /// A listener that only this machine reaches gets its requests from a proxy.
    private var proxies: Diagnosis? {
        guard let location = configuration.publicListener, configuration.trustedProxies.isEmpty, location.isLocal else {
            return nil
        }
        return .warning(
            "trusted proxies",
            """
            none: behind a proxy all clients count as one address, and share its \(configuration.googleCallsPerMinute) \
            failed sign-ins a minute
            """,
            advice: "name the proxy with --trusted-proxy"
        )
    }

    private var emailLinking: Diagnosis? {
        guard configuration.publicListener != nil, configuration.emailLinking == .any else { return nil }
        return .warning(
            "linking by e-mail",
            """
            --link-by-email any: a person who signed up with another person's address shares the account with its \
            owner, once the owner signs in with Google
            """,
            advice: "use verified, unless the backend verifies every address before it stores it"
        )
    }

    private var listeners: [Diagnosis] {
        [
            configuration.publicListener.map { examine("public listener", $0) },
            configuration.internalListener.map { examine("internal listener", $0) },
        ].compactMap(\.self)
    }

    private func examine(_ subject: String, _ location: ListenerLocation) -> Diagnosis {
        switch location {
        case .systemd(let name): .ok(subject, "the socket \(DisplayedText(name)), which systemd passes")
        case .own(.unix(let path, mode: _)): examine(subject, socket: path)
        case .own(let address): examine(subject, address: address)
        }
    }

    private func examine(_ subject: String, address: ListenAddress) -> Diagnosis {
        do throws(HTTPServerError) {
            try address.tryToBind()
            return .ok(subject, "\(address) is free")
        } catch {
            guard !error.isAddressInUse else { return .ok(subject, "\(address) is in use: by the worker, if it runs") }
            return .fault(
                subject,
                "\(error)",
                advice: "name an address of this machine, and a port that the worker's user may open"
            )
        }
    }

    private func examine(_ subject: String, socket path: String) -> Diagnosis {
        let folder = FileStatus.folder(of: path)
        do {
            if let status = try FileStatus.of(path) {
                guard status.kind == .other else {
                    return .fault(subject, "\(path) exists and is not a socket", advice: "name another path")
                }
                return .ok(subject, "\(path) exists: the worker uses it, if it runs")
            }
            guard try FileStatus.of(folder)?.kind == .folder else {
                guard folder == Self.runtimeFolder else {
                    return .fault(
                        subject,
                        "\(folder) does not exist",
                        advice: "create it, and let the worker's user write to it"
                    )
                }
                return .warning(subject, "\(folder) does not exist: systemd creates it at the start of the service")
            }
            guard FileStatus.mayWrite(folder) else {
                return .fault(subject, "\(path) cannot be created", advice: "let the worker's user write to \(folder)")
            }
            return .ok(subject, "\(path) will be created in a folder that can be written")
        } catch {
            return .fault(subject, "\(error)", advice: "check that the worker's user may enter its folders")
        }
    }
}

extension ListenerLocation {
    /// `true` if only this machine reaches the listener.
    ///
    /// For a systemd socket that is unknown until systemd passes it.
    fileprivate var isLocal: Bool {
        switch self {
        case .own(let address): address.reach == .thisMachine
        case .systemd: false
        }
    }
}
