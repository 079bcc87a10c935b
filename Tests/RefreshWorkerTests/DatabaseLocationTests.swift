import Testing

@testable import RefreshWorker

@Suite("The location of the database")
struct DatabaseLocationTests {
    private static let password = "pass-of-the-test"

    @Test("is a file by default, and for any text other than an address")
    func file() throws {
        #expect(try TestMachine().resolve().database == .file("/var/lib/refresh-worker/grants.sqlite"))
        #expect(try TestMachine(flags: [(.database, "a b:c")]).resolve().database == .file("a b:c"))
    }

    /// An address and its printed form.
    @Test(
        "is an address that prints without its password",
        arguments: [
            ("postgres:///grants", "postgres:///grants"),
            ("postgresql://worker@db:5433/grants", "postgres://worker@db:5433/grants"),
            ("postgres://worker:pass-of-the-test@db/grants", "postgres://worker@db/grants"),
            ("postgres://w%40x:pass-of-the-test@db/a%2Fb", "postgres://w%40x@db/a/b"),
            (
                "postgres://db/grants?password=pass-of-the-test&sslmode=verify-full",
                "postgres://db/grants?sslmode=verify-full"
            ),
            ("postgres://db/grants?p%61ssword=pass-of-the-test", "postgres://db/grants"),
            ("postgres://db/grants?sslpassword=pass-of-the-test", "postgres://db/grants"),
            ("postgres://w:pass-of-the-test@a:1,b:2/g", "postgres://w@a:1,b:2/g"),
            ("postgres://[::1]:5432/g", "postgres://[::1]:5432/g"),
            ("postgres:///g?host=/run/pg&port=5433", "postgres:///g?host=/run/pg&port=5433"),
        ]
    )
    func address(text: String, shown: String) throws {
        let location = try TestMachine(environment: ["REFRESH_WORKER_DATABASE": text]).resolve().database
        #expect("\(location)" == shown)
        #expect(location.holdsPassword == text.contains(Self.password))
        #expect(!rendered(location).contains(Self.password))
        // The printed form leads to the same location.
        #expect("\(try DatabaseLocation(shown))" == shown)
    }

    @Test(
        "is refused without showing the password",
        arguments: [
            ("mysql://u:pass-of-the-test@h/db", "neither the path"),
            ("Postgres://u:pass-of-the-test@h/db", "neither the path"),
            ("postgres://u:pass-of-the-test@h/db?sslmod=x", "not understood"),
            ("postgres://u:pass-of-the-test%zz@h/db", "not understood"),
            ("postgres://u:/pass-of-the-test@h/db", "not understood"),
            ("postgres://u:x@pass-of-the-test@h/db", "not understood"),
            ("postgres://u:\"pass-of-the-test%zz@h/db", "not understood"),
        ]
    )
    func refused(text: String, message: String) throws {
        for machine in [
            TestMachine(environment: ["REFRESH_WORKER_DATABASE": text]), TestMachine(flags: [(.database, text)]),
            TestMachine(environment: ["REFRESH_WORKER_DATABASE": "url-file:/u"], files: ["/u": text]),
        ] {
            let complaint = try #require(machine.complaints.first)
            #expect(complaint.contains(message), "\(complaint)")
            #expect(!complaint.contains(Self.password), "\(complaint)")
        }
    }

    @Test(
        "is not a file if its name is a mistyped address",
        arguments: [
            "postgres:/u:pass-of-the-test@h/db", "postgresql:u:pass-of-the-test@h/db", "Postgres:pass-of-the-test",
            "host=h password=pass-of-the-test", "user=u PASSWORD = pass-of-the-test", "dbname=pass-of-the-test",
        ]
    )
    func mistyped(text: String) throws {
        for machine in [
            TestMachine(environment: ["REFRESH_WORKER_DATABASE": text]), TestMachine(flags: [(.database, text)]),
        ] {
            let complaint = try #require(machine.complaints.first)
            #expect(complaint.contains("begins with postgres://"), "\(complaint)")
            #expect(!complaint.contains(Self.password), "\(complaint)")
        }
    }

    @Test("is not accepted as an argument with a password, because all users can read arguments")
    func argument() throws {
        let secret = "postgres://w:\(Self.password)@db/grants"
        let complaint = try #require(TestMachine(flags: [(.database, secret)]).complaints.first)
        #expect(complaint.hasPrefix("--database: holds a password"))
        #expect(complaint.contains("url-file:FILE"))
        #expect(!complaint.contains(Self.password))
        #expect(TestMachine(flags: [(.database, "postgres://w@db/grants")]).complaints.isEmpty)
        #expect(TestMachine(file: "REFRESH_WORKER_DATABASE=\(secret)").complaints.isEmpty)
    }

    @Test("is read from a named file, or from one that systemd passes")
    func addressInFile() throws {
        let address = "postgres://w:\(Self.password)@db/grants"
        let files = ["/u": "\(address)\n", "/run/c/database-url": address]
        let named = TestMachine(flags: [(.database, "url-file:/u")], files: files)
        let handed = TestMachine(environment: ["CREDENTIALS_DIRECTORY": "/run/c"], files: files)
        for machine in [named, handed] {
            #expect(try machine.resolve().database == DatabaseLocation(address))
        }
        var own = handed
        own.flags = [(.database, "/mine")]
        #expect(try own.resolve().database == .file("/mine"))
    }

    @Test(
        "is not read from a file that is missing, empty, long or of another kind",
        arguments: [
            (nil, "No such file"), ("", "one line"), ("\n", "one line"), ("postgres://a/b\npostgres://c/d", "one line"),
            ("/var/lib/grants.sqlite", "does not begin with postgres://"),
        ] as [(String?, String)]
    )
    func badFile(content: String?, message: String) throws {
        var machine = TestMachine(flags: [(.database, "url-file:/u")])
        machine.files["/u"] = content
        let complaint = try #require(machine.complaints.first)
        #expect(complaint.hasPrefix("--database: "))
        #expect(complaint.contains(message), "\(complaint)")
    }

    @Test("is not read from a file that other users may read")
    func openFile() async throws {
        try await OperatorFixture.with { fixture in
            try fixture.write("postgres://w@db/g\n", to: "url", mode: 0o644)
            #expect {
                _ = try fixture.context([(.database, "url-file:\(fixture.path("url"))")])
            } throws: { error in
                "\(error)".contains("chmod 600")
            }
            try fixture.chmod("url", 0o600)
            let context = try fixture.context([(.database, "url-file:\(fixture.path("url"))")])
            #expect("\(context.configuration.database)" == "postgres://w@db/g")
        }
    }

    private func rendered(_ location: DatabaseLocation) -> String {
        var dumped = ""
        dump(location, to: &dumped)
        return "\(location) \(String(reflecting: location)) \(dumped)"
    }
}
