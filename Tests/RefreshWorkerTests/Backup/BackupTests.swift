import Base
import Crypto
import Foundation
import Storage
import Testing

@testable import RefreshWorker
@testable import Status

@Suite("Backup", .timeLimit(.minutes(10)))
struct BackupTests {
    @Test("a copy of a database in use holds its grants, still sealed, and only its owner may read it")
    func live() async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            let store = try fixture.openStore()
            let vault = try fixture.openVault()
            try await fixture.insert(1...50, sealedBy: vault, into: store)
            let file = fixture.path("copy.sqlite")
            #expect(try await fixture.context().run(["backup", file]) == .success)
            // The original is still in use.
            try await fixture.insert(51...51, sealedBy: vault, into: store)
            await store.close()
            #expect(try FileStatus.of(file)?.mode == "0600")

            let copy = try SQLiteStore(path: file, timeSource: fixture.time)
            let grants = try await copy.grants(after: nil, in: nil, atMost: 100)
            await copy.close()
            #expect(grants.count == 50)
            let first = try #require(grants.first)
            #expect(try vault.openRefreshToken(of: first)?.reveal() == "refresh 1")
            #expect(try fixture.names.filter { $0.contains("partial") } == [])
        }
    }

    @Test(
        "existing files are not overwritten, and folders are not created",
        arguments: ["there", "no/copy", "file/copy"]
    )
    func refused(name: String) async throws {
        try await OperatorFixture.with { fixture in
            let store = try fixture.openStore()
            await store.close()
            try fixture.write("kept", to: "there")
            try fixture.write("", to: "file")
            let context = try fixture.context()
            let refusal = await failure { try await context.run(["backup", fixture.path(name)]) }
            #expect(refusal?.exitCode == .cannotCreate)
            #expect(try FileStatus.of(fixture.path("there"))?.size == 4)
            #expect(!fixture.exists("no"))
        }
    }

    @Test("an archive has the configuration, and secrets only if asked", arguments: [false, true])
    func archive(hasSecrets: Bool) async throws {
        try await OperatorFixture.with { fixture in
            _ = try KeyRingFile.generate(path: fixture.keyFile)
            await (try fixture.openStore()).close()
            let configuration = "\(Setting.Name.jwtSecretFile.environmentName)=\(fixture.path("jwt"))\n"
            try fixture.write(configuration, to: "worker.conf")
            try fixture.write("the secret of the app's own tokens", to: "jwt")
            try fixture.write("the hashes of services", to: "services")
            let context = try fixture.context([
                (.config, fixture.path("worker.conf")), (.jwtSecretFile, fixture.path("jwt")),
                (.servicesFile, fixture.path("services")),
            ])
            let file = fixture.path("copy.tar")
            let words = ["backup", "--archive", file] + (hasSecrets ? ["--with-secrets"] : [])
            #expect(try await context.run(words) == .success)
            #expect(try FileStatus.of(file)?.mode == "0600")
            let text = String(decoding: try FileReader.system.read(file), as: UTF8.self)
            #expect(text.contains(configuration) && text.contains("SQLite format 3"))
            #expect(text.contains("app's own tokens") == hasSecrets)
            #expect(text.contains("hashes of services") == hasSecrets)
            #expect(try fixture.names.filter { $0.hasPrefix("copy") } == ["copy.tar"])
        }
    }

    @Test("an archive of an installation whose configuration file is /dev/null has no such file")
    func withoutConfiguration() async throws {
        try await OperatorFixture.with { fixture in
            await (try fixture.openStore()).close()
            let context = try fixture.context([(.config, "/dev/null")])
            #expect(context.configuration.restoredFiles(credentialsDirectory: nil).open == [])
            #expect(try await context.run(["backup", "--archive", fixture.path("copy.tar")]) == .success)
        }
    }

    @Test("credentials of systemd are not archived but named, and without the key ring tokens stay sealed")
    func credentials() async throws {
        try await OperatorFixture.with { fixture in
            func restored(_ folder: String?) throws -> RestoredFiles {
                try fixture.context([(.jwtSecretFile, fixture.path("jwt"))]).configuration
                    .restoredFiles(credentialsDirectory: folder)
            }
            try fixture.write("client", to: "client-id")
            let all = [fixture.keyFile, fixture.path("jwt")]
            for folder in [fixture.root, fixture.root + "/"] {
                #expect(try restored(folder).credentials == all + [fixture.path("client-id")])
                #expect(try restored(folder).secret == [])
            }
            for folder in [nil, String(fixture.root.dropLast())] {
                #expect(try restored(folder).credentials == [])
                #expect(try restored(folder).secret == all)
            }
            let configuration = try fixture.context().configuration
            #expect(configuration.secrecy(ofCopyWith: all, hasSecrets: true).contains("every token in it can be used"))
            let others = configuration.secrecy(ofCopyWith: [fixture.path("jwt")], hasSecrets: true)
            #expect(others.contains("tokens stay sealed") && others.contains("other secrets in plain text"))
            #expect(configuration.secrecy(ofCopyWith: [], hasSecrets: false) == "Its tokens stay sealed.")
        }
    }

    @Test("a file is archived under its configured path, made absolute, with the links in it")
    func linkedFolder() async throws {
        try await OperatorFixture.with { fixture in
            await (try fixture.openStore()).close()
            try FileManager.default.createSymbolicLink(
                atPath: fixture.path("link"),
                withDestinationPath: fixture.root
            )
            let context = try fixture.context([(.database, fixture.path("link/grants.sqlite"))])
            #expect(try await context.run(["backup", "--archive", fixture.path("copy.tar")]) == .success)
            let name = try FileReader.system.read(fixture.path("copy.tar")).prefix { $0 != 0 }
            #expect("/" + String(decoding: name, as: UTF8.self) == fixture.path("link/grants.sqlite"))
            #expect(PathResolver.restorable("/a/./b/../c//d") == "/a/c/d")
            #expect(PathResolver.restorable("d/e") == PathResolver.absolute(".") + "/d/e")
        }
    }

    @Test("a certificate in one file with its key is a secret, under each of its names")
    func combinedCertificate() async throws {
        try await OperatorFixture.with { fixture in
            try fixture.write("CERTIFICATE, PRIVATE KEY", to: "both.pem")
            try fixture.write("CERTIFICATE", to: "other.pem")
            try FileManager.default.createSymbolicLink(
                atPath: fixture.path("link.pem"),
                withDestinationPath: fixture.path("both.pem")
            )
            func restored(_ certificate: String) throws -> RestoredFiles {
                try fixture.context([
                    (.internalCertificate, fixture.path(certificate)), (.internalKey, fixture.path("both.pem")),
                ]).configuration.restoredFiles(credentialsDirectory: nil)
            }
            let secret = [fixture.keyFile, fixture.path("both.pem")]
            let cases: [(String, [String], [String])] = [
                ("both.pem", [], []), ("link.pem", [], ["link.pem"]), ("other.pem", ["other.pem"], []),
            ]
            for (certificate, open, link) in cases {
                let files = RestoredFiles(
                    open: open.map(fixture.path),
                    secret: secret + link.map(fixture.path),
                    credentials: []
                )
                #expect(try restored(certificate) == files)
            }
        }
    }

    @Test("an archive that cannot be complete is not made")
    func incomplete() async throws {
        try await OperatorFixture.with { fixture in
            await (try fixture.openStore()).close()
            let context = try fixture.context()
            let file = fixture.path("copy.tar")
            let refusal = await failure { try await context.run(["backup", "--archive", "--with-secrets", file]) }
            #expect(refusal?.exitCode == .cannotCreate && refusal?.message.contains(fixture.keyFile) == true)
            #expect(try fixture.names.filter { $0.hasPrefix("copy") } == [])
        }
    }

    @Test("what a killed backup has left goes at the next one of this name, and what a process holds stays")
    func leftovers() async throws {
        try await OperatorFixture.with { fixture in
            await (try fixture.openStore()).close()
            let start = "copy.tar.partial-archive-"
            let others = [start + "2e", start + "2e.database", start + "notes", "copy.tar.partial-5c", "copy.tar.gpg"]
            let remains = [start + "1f", start + "1f.database", start + "3d.database"]
            for name in others + remains { try fixture.write("of an earlier backup", to: name) }
            let running = try #require(try SpillFile.openIfThere(fixture.path(start + "2e")))
            #expect(try running.tryLock())
            let context = try fixture.context()
            #expect(try await context.run(["backup", "--archive", fixture.path("copy.tar")]) == .success)
            let names = try withExtendedLifetime(running) { try fixture.names }
            #expect(names.filter { $0.hasPrefix("copy") } == (others + ["copy.tar"]).sorted())
        }
    }

    @Test(
        "what a killed nightly archive has left goes before the next one, also if that fails",
        arguments: [true, false]
    )
    func nightlyLeftovers(fails: Bool) async throws {
        try await OperatorFixture.with { fixture in
            await (try fixture.openStore()).close()
            let backups = fixture.path("backups")
            try FileManager.default.createDirectory(atPath: backups, withIntermediateDirectories: false)
            let killed = "refresh-worker-20260101T030000Z.tar.partial-archive-"
            let copies = (1...4).map { "refresh-worker-2026010\($0)T030000Z.tar" }
            for name in ["\(killed)1f", "\(killed)1f.database", "\(killed)2e"] + copies.dropFirst() {
                try fixture.write("of another night", to: "backups/\(name)")
            }
            // A folder cannot be removed as a file, and must not keep the others.
            try FileManager.default.createDirectory(
                atPath: "\(backups)/\(copies[0])",
                withIntermediateDirectories: false
            )
            let running = try #require(try SpillFile.openIfThere("\(backups)/\(killed)2e"))
            #expect(try running.tryLock())
            let words = ["backup", "--archive", "--keep", "2", backups] + (fails ? ["--with-secrets"] : [])
            let refusal = await failure { try await fixture.context().run(words) }
            // It fails because there is no key ring.
            #expect((refusal?.exitCode == .cannotCreate) == fails)
            let left = try FileManager.default.contentsOfDirectory(atPath: backups).sorted()
            let expected = [copies[0], "\(killed)2e"] + copies.suffix(fails ? 2 : 1)
            #expect(left.filter { $0.hasPrefix("refresh-worker-20260") } == expected)
            withExtendedLifetime(running) {}
        }
    }

    @Test("the folder of the timer's copies is that of the unit or of its drop-in, if the timer is on")
    func nightly() throws {
        let root = "\(NSTemporaryDirectory())/machine-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: root) }
        func write(_ text: String, to path: String) throws {
            let url = URL(filePath: root + path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: url)
        }
        try write("", to: "/var/lib/refresh-worker/backups/refresh-worker-20260101T030000Z.tar")
        #expect(NightlyBackups.find(root: root) == nil)
        try write("", to: "/etc/systemd/system/timers.target.wants/refresh-worker-backup.timer")
        let usual = try #require(NightlyBackups.find(root: root))
        #expect(usual.folder == "/var/lib/refresh-worker/backups" && usual.lastAt != nil)
        let dropIn = "[Service]\nExecStart=\nExecStart=/usr/bin/refresh-worker backup --archive --keep 3 /srv/copies\n"
        try write(dropIn, to: "/etc/systemd/system/refresh-worker-backup.service.d/override.conf")
        try write("", to: "/srv/copies/refresh-worker-20260101T030000Z.tar.partial-archive-1f")
        let changed = try #require(NightlyBackups.find(root: root))
        #expect(changed.folder == "/srv/copies" && changed.lastAt == nil)
    }

    @Test("the latest copies stay, and remains of a killed backup for a day")
    func series() {
        let now = Timestamp(milliseconds: 1_800_000_000_000)
        let names = (0..<4).map { BackupSeries.name(at: now - .seconds(86_400 * $0), ending: ".tar") }
        #expect(names[0] == "refresh-worker-20270115T080000Z.tar")
        let others = [names[3] + ".partial-1f", names[0] + ".partial-1f.database", "grants.sqlite"]
        let removed = BackupSeries.superfluous(among: names + others, keeping: 2, ending: ".tar", at: now)
        #expect(removed == [names[3], names[2], names[3] + ".partial-1f"])
        #expect(BackupSeries.superfluous(among: names, keeping: 4, ending: ".tar", at: now) == [])
        #expect(BackupSeries.superfluous(among: names, keeping: 1, ending: ".sqlite", at: now) == [])
    }

    @Test("files of the operator stay beside the copies, and so does the copy just made")
    func othersInFolder() {
        let now = Timestamp(milliseconds: 1_800_000_000_000)
        func copy(_ days: Int64) -> String { BackupSeries.name(at: now + .seconds(86_400 * days), ending: ".tar") }
        let others = [
            "refresh-worker-20260101T030000Z.tar.gpg", "refresh-worker-2026-before-upgrade.tar.gz",
            "refresh-worker-before-migration.tar", "refresh-worker-2026010aT030000Z.tar",
        ]
        func removed(_ copies: [String], keeping count: Int) -> [String] {
            BackupSeries.superfluous(among: copies + others, keeping: count, ending: ".tar", at: now)
        }
        #expect(removed([copy(0)], keeping: 1) == [])
        // The clock was ahead once.
        let copies = [copy(-2), copy(-1), copy(0), copy(30)]
        #expect(removed(copies, keeping: 3) == [copy(30)])
        #expect(removed(copies, keeping: 1) == [copy(30), copy(-2), copy(-1)])
    }

    @Test(
        "a path of up to 255 bytes is split where it fits",
        arguments: [
            ("/etc/keys", "etc/keys", ""),
            ("/" + String(repeating: "a", count: 100), String(repeating: "a", count: 100), ""),
            (
                "/\(String(repeating: "b", count: 90))/c/\(String(repeating: "d", count: 20))",
                "c/\(String(repeating: "d", count: 20))", String(repeating: "b", count: 90)
            ),
            ("/" + String(repeating: "a", count: 101), nil, ""),
        ] as [(String, String?, String)]
    )
    func header(path: String, name: String?, prefix: String) {
        let (user, group) = ((id: UInt32(1), name: "u"), (id: UInt32(2), name: "g"))
        let block = BackupArchive.header(
            path: path,
            mode: 0o640,
            user: user,
            group: group,
            size: 9 << 30,
            modifiedAt: 1
        )
        func field(_ range: Range<Int>) -> String? {
            block.map { String(decoding: $0[range].prefix { $0 != 0 }, as: UTF8.self) }
        }
        #expect(field(0..<100) == name)
        guard let block else { return }
        #expect(field(345..<500) == prefix && field(100..<108) == "0000640" && field(265..<297) == "u")
        // 9 GiB need the form of GNU.
        #expect(block[124..<136] == [0x80, 0, 0, 0, 0, 0, 0, 2, 0x40, 0, 0, 0])
        let sum = block.enumerated().reduce(0) { $0 + (148..<156 ~= $1.offset ? 32 : Int($1.element)) }
        #expect(field(148..<156).flatMap { Int($0, radix: 8) } == sum)
    }

    @Test("a damaged database fails")
    func damaged() async throws {
        try await OperatorFixture.with { fixture in
            try fixture.write(String(repeating: "no database ", count: 500), to: "grants.sqlite")
            let context = try fixture.context()
            let refusal = await failure { try await context.run(["backup", fixture.path("copy")]) }
            #expect(refusal?.exitCode == .configuration)
            #expect(!fixture.exists("copy"))
        }
    }
}
