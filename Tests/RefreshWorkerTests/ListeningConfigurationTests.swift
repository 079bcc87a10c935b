import HTTPServer
import Testing

@testable import RefreshWorker

@Suite("Configuration of the listeners and the notices")
struct ListeningConfigurationTests {
    private static let jwt: [(Setting.Name, String)] = [(.jwtSecretFile, "/jwt"), (.clientID, "1-a")]
    private static let services: [(Setting.Name, String)] = [(.servicesFile, "/services")]

    @Test("listeners and notices are off by default")
    func off() throws {
        let configuration = try TestMachine().resolve()
        #expect(configuration.publicListener == nil && configuration.internalListeners.isEmpty)
        #expect(configuration.noticeURL == nil)
    }

    @Test(
        "the app's routes are served on an address, or on a socket from systemd",
        arguments: [
            ("127.0.0.1:8080", ListenerLocation.own(.tcp(address: "127.0.0.1", port: 8080))),
            ("0.0.0.0:80", .own(.tcp(address: "0.0.0.0", port: 80))),
            ("[::1]:8080", .own(.tcp(address: "::1", port: 8080))), ("systemd:public", .systemd(name: "public")),
        ]
    )
    func publicLocation(text: String, location: ListenerLocation) throws {
        #expect(try TestMachine(flags: Self.jwt + [(.listen, text)]).resolve().publicListener == location)
    }

    @Test(
        "tokens are vended on this machine only",
        arguments: [
            ("127.0.0.1:9464", ListenerLocation.own(.tcp(address: "127.0.0.1", port: 9464))),
            ("[::1]:9464", .own(.tcp(address: "::1", port: 9464))), ("systemd:internal", .systemd(name: "internal")),
            ("unix:/run/s", .own(.unix(path: "/run/s", mode: 0o600))),
        ]
    )
    func internalLocation(text: String, location: ListenerLocation) throws {
        #expect(
            try TestMachine(flags: Self.services + [(.listenInternal, text)]).resolve().internalListeners == [location]
        )
    }

    @Test(
        "the internal listener can have several addresses: flags that repeat, or a list",
        arguments: [
            ["unix:/run/s", "127.0.0.1:9464"], ["unix:/run/s, 127.0.0.1:9464"],
            ["unix:/run/s,127.0.0.1:9464,unix:/run/s"],
        ]
    )
    func internalLocations(texts: [String]) throws {
        let flags = Self.services + texts.map { (Setting.Name.listenInternal, $0) }
        let locations: [ListenerLocation] = [
            .own(.unix(path: "/run/s", mode: 0o600)), .own(.tcp(address: "127.0.0.1", port: 9464)),
        ]
        #expect(try TestMachine(flags: flags).resolve().internalListeners == locations)
    }

    @Test(
        "an invalid location is refused with the valid forms",
        arguments: [
            (Setting.Name.listen, "8080", "ADDRESS:PORT"), (.listen, "localhost:8080", "in figures"),
            (.listen, "systemd:", "FileDescriptorName"), (.listen, "unix:/run/s", "127.0.0.1:PORT"),
            (.listenInternal, "unix:s", "unix:PATH"), (.listenInternal, "worker:9464", "unix:PATH"),
            (.listenInternal, "unix:/run/s,9464", "unix:PATH"),
        ]
    )
    func refused(name: Setting.Name, text: String, advice: String) {
        let complaints = TestMachine(flags: Self.jwt + Self.services + [(name, text)]).complaints
        #expect(complaints.count == 1 && complaints.first?.contains(advice) == true, "\(complaints)")
    }

    @Test(
        "only the daemon requires the settings that another setting needs",
        arguments: [
            ([(.listen, "127.0.0.1:1"), (.clientID, "1-a")], "--jwt-secret-file"),
            ([(.listen, "127.0.0.1:1"), (.jwtSecretFile, "/jwt")], "--client-id"),
            ([(.noticeURL, "https://b.example")], "--notice-secret-file"),
            ([(.internalCertificate, "/c")], "--internal-key"), ([(.internalKey, "/k")], "--internal-certificate"),
        ] as [([(Setting.Name, String)], String)]
    )
    func needs(flags: [(Setting.Name, String)], missing: String) throws {
        let configuration = try TestMachine(flags: flags).resolve()
        let error = #expect(throws: CommandError.self) { try configuration.checkServing(environment: [:]) }
        #expect(configuration.servingProblems(environment: [:]).count == 1)
        #expect(error?.description.contains("needs \(missing)") == true)
    }

    @Test(
        "tokens leave the machine over TLS only, and a unix socket is served without TLS",
        arguments: [
            ("0.0.0.0:9464", false, ["--internal-certificate and --internal-key", "nginx", "unix:PATH"]),
            ("192.0.2.1:9464", false, ["--internal-certificate and --internal-key", "nginx", "unix:PATH"]),
            ("[::]:9464", false, ["--internal-certificate and --internal-key", "nginx", "unix:PATH"]),
            ("[::ffff:192.0.2.1]:9464", false, ["nginx"]), ("0.0.0.0:9464", true, nil), ("192.0.2.1:9464", true, nil),
            ("127.0.0.1:9464", false, nil), ("127.8.0.1:9464", false, nil), ("[::1]:9464", false, nil),
            ("[::ffff:127.0.0.1]:9464", false, nil), ("127.0.0.1:9464", true, nil), ("unix:/run/s", false, nil),
            ("unix:/run/s", true, ["leave --internal-certificate and --internal-key out"]),
            ("systemd:internal", false, nil), ("systemd:internal", true, nil),
            ("unix:/run/s,127.0.0.1:9464", false, nil), ("unix:/run/s,0.0.0.0:9464", true, nil),
            ("unix:/run/s,0.0.0.0:9464", false, ["0.0.0.0:9464 can be reached from other machines"]),
            ("unix:/run/s,systemd:internal", true, nil),
        ] as [(String, Bool, [String]?)]
    )
    func internalTLS(location: String, hasCertificate: Bool, complaint: [String]?) throws {
        let pair: [(Setting.Name, String)] = [(.internalCertificate, "/c"), (.internalKey, "/k")]
        let flags = Self.services + [(.listenInternal, location)] + (hasCertificate ? pair : [])
        let configuration = try TestMachine(flags: flags).resolve()
        guard let complaint else {
            #expect(throws: Never.self) { try configuration.checkServing(environment: [:]) }
            return
        }
        let error = #expect(throws: CommandError.self) { try configuration.checkServing(environment: [:]) }
        #expect(configuration.servingProblems(environment: [:]).count == 1)
        for words in complaint { #expect(error?.description.contains(words) == true, "\(error?.description ?? "")") }
    }

    @Test("the app's secret may come from the former backend's variable")
    func variable() throws {
        let flags: [(Setting.Name, String)] = [(.listen, "127.0.0.1:1"), (.clientID, "1-a")]
        let configuration = try TestMachine(flags: flags).resolve()
        #expect(configuration.jwtSecretFile == nil)
        #expect(throws: Never.self) { try configuration.checkServing(environment: [Setting.jwtSecretName: "s"]) }
    }

    @Test("a socket's mode always excludes other users", arguments: [("0666", false), ("0660", true), ("0060", false)])
    func socketMode(text: String, isGood: Bool) {
        #expect(TestMachine(flags: [(.socketMode, text)]).complaints.isEmpty == isGood)
    }

    @Test("a proxy is an address or a network", arguments: [("10.0.0.0/8, ::1", 0), ("proxy.example", 1)])
    func proxies(text: String, problems: Int) {
        #expect(TestMachine(flags: [(.trustedProxy, text)]).complaints.count == problems)
    }
}
