import Base
import GoogleOAuth
import HTTPServer
import Routes

/// The checks of the files and settings that the listeners and the notices need.
extension Doctor {
    /// The folder that systemd creates for the service (`RuntimeDirectory=`).
    private static let runtimeFolder = "/run/refresh-worker"

    func servingChecks() -> [Check] {
        startChecks
            + [
                appSecret, formerTokens, services, noticeSecret, proxies, emailLinking, certificate,
                configuration.publicListener.map { listener("public listener", at: $0) },
            ].compactMap(\.self) + configuration.internalListeners.map { listener("internal listener", at: $0) }
            + appKeyFiles
    }

    /// One fault for each rule about settings that the daemon refuses to start with.
    ///
    /// The daemon checks the same function. `DoctorAgreementTests` runs a table of configurations through both.
    private var startChecks: [Check] {
        configuration.servingProblems(environment: context.inputs.environment).map {
            .fault("\($0.origin) \($0.message)").named("settings")
        }
    }

    private var appSecret: Check? {
        // Without any secret, the settings are a fault already.
        guard context.hasAppSecret else { return nil }
        guard configuration.verifiesAppTokens || configuration.jwtSecretFile != nil else { return nil }
        let source = configuration.jwtSecretFile ?? "the variable \(Setting.jwtSecretName)"
        return check("app's token secret") {
            _ = try context.openSigner()
            return .ok("\(source) can be used")
        }
    }

    private var appKeyFiles: [Check] {
        configuration.appKeys.compactMap { location in
            guard case .file(let path) = location, configuration.verifiesAppTokens else { return nil }
            return check("app's keys") { .ok("\(path) has \(try context.readAppKeys(path).summary)") }
        }
    }

    /// Checks former refresh tokens.
    ///
    /// They are only as safe as the secret that signed them, so accepting them should end.
    private var formerTokens: Check? {
        guard configuration.publicListener != nil else { return nil }
        let flag = "--\(Setting.Name.acceptFormerRefreshTokensUntil.rawValue)"
        return check("former refresh tokens") {
            guard let end = configuration.acceptFormerRefreshTokensUntil else {
                return .ok("refused: \(flag) accepts those of a former backend while its users move")
            }
            guard context.time.now < end else {
                return .warning("refused since \(end.iso8601Seconds)", advice: "remove \(flag) from the configuration")
            }
            return .ok(
                """
                accepted until \(end.iso8601Seconds): each one that the app's secret has signed and that has not expired begins \
                one session of a stored, active user; import the users before
                """
            )
        }
    }

    private var services: Check? {
        guard let path = configuration.servicesFile else {
            guard !configuration.internalListeners.isEmpty else { return nil }
            return .ok("none: the internal listener vends no tokens without --services-file").named("services")
        }
        return check("services") {
            .ok("\(path) names \(try context.readServices().count.counted("service"))")
        }
    }

    private var noticeSecret: Check? {
        guard let path = configuration.noticeSecretFile else { return nil }
        return check("notice secret") {
            _ = try context.openNoticeKeys()
            return .ok("\(path) can be used")
        }
    }

    private var certificate: Check? {
        // Without a key, the settings are a fault already.
        guard let path = configuration.internalCertificateFile, configuration.internalKeyFile != nil else { return nil }
        return check("internal certificate") {
            guard let certificate = try context.readInternalCertificate() else { return .ok("none") }
            guard let problem = certificate.problem(in: path, at: context.time.now) else {
                return .ok("\(path) is valid until \(certificate.expiresAt.iso8601Seconds)")
            }
            return .warning(problem.text)
        }
    }

    /// Warns about missing trusted proxies.
    ///
    /// A listener that only this machine reaches gets its requests from a proxy. For a systemd socket that is unknown
    /// until systemd passes it.
    private var proxies: Check? {
        guard case .own(let address)? = configuration.publicListener, address.reach == .thisMachine,
            configuration.trustedProxies.isEmpty
        else { return nil }
        let finding = """
            none: behind a proxy all clients count as one address, and share its \(configuration.googleCallsPerMinute) \
            failed sign-ins a minute
            """
        return .warning(finding, advice: "name the proxy with --trusted-proxy").named("trusted proxies")
    }

    private var emailLinking: Check? {
        guard configuration.publicListener != nil, configuration.emailLinking == .any else { return nil }
        let finding = """
            --link-by-email any: a person who signed up with another person's address shares the account with its \
            owner, once the owner signs in with Google
            """
        return .warning(finding, advice: "use verified, unless the backend verifies every address before it stores it")
            .named("linking by e-mail")
    }

    private func listener(_ name: String, at location: ListenerLocation) -> Check {
        switch location {
        case .systemd(let socket): .ok("the socket \(DisplayedText(socket)), which systemd passes").named(name)
        case .own(.unix(let path, mode: _)): check(name, orElse: Self.folderAdvice) { try Self.socket(path) }
        case .own(let address): Self.free(address).named(name)
        }
    }

    private static func free(_ address: ListenAddress) -> Check {
        do throws(HTTPServerError) {
            try address.tryToBind()
            return .ok("\(address) is free")
        } catch {
            guard !error.isAddressInUse else { return .ok("\(address) is in use: by the worker, if it runs") }
            return .fault(
                "\(error)",
                advice: "name an address of this machine, and a port that the worker's user can open"
            )
        }
    }

    private static func socket(_ path: String) throws -> Check {
        let folder = path.parentFolder
        if let status = try FileStatus.of(path) {
            guard status.kind == .other else {
                return .fault("\(path) exists and is not a socket", advice: "name another path")
            }
            return .ok("\(path) exists: the worker uses it, if it runs")
        }
        if try FileStatus.of(folder)?.kind == .folder { return creation(of: path, in: folder) }
        if folder == runtimeFolder {
            return .warning("\(folder) does not exist: systemd creates it at the start of the service")
        }
        return .fault("\(folder) does not exist", advice: "create it, and let the worker's user write to it")
    }
}
