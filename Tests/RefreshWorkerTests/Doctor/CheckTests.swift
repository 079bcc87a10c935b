import Base
import HTTPClient
import Storage
import Testing

@testable import RefreshWorker

@Suite("Checks of the doctor")
struct CheckTests {
    private static let now = Timestamp(secondsSince1970: 1_800_000_000)
    private static let network = Check.fault("down").ofEndpoint("token endpoint")

    @Test(
        "the exit code distinguishes faults of the set-up from those of the network",
        arguments: [
            ([], .success), ([.ok("b")], .success), ([.warning("b")], .success),
            ([network, .warning("b")], .peerUnreachable), ([network, .fault("b")], .configuration),
            ([.fault("b")], .configuration),
        ] as [([Check], ExitCode)]
    )
    func exitCode(checks: [Check], code: ExitCode) {
        #expect(checks.exitCode == code)
    }

    @Test("a check is one line, coloured only on request")
    func line() {
        let check = Check.fault("is gone\nmake one").named("key ring")
        #expect(check.line(isColoured: false) == "FAULT  key ring              is gone; make one")
        #expect(check.line(isColoured: true).hasPrefix("\u{1b}[31mFAULT\u{1b}[0m  key ring"))
    }

    @Test("as JSON, the advice is apart from the finding")
    func json() {
        let checks: [Check] = [
            .ok("is right").named("clock"), .fault("is gone", advice: "restore it").named("key ring"),
            .warning("late").named("status"),
        ]
        #expect(
            written { checks.write(to: &$0) }.text == """
                {"faults":1,"warnings":1,"checks":[\
                {"name":"clock","result":"ok","text":"is right","advice":null},\
                {"name":"key ring","result":"fault","text":"is gone","advice":"restore it"},\
                {"name":"status","result":"warning","text":"late","advice":null}]}
                """
        )
        #expect(checks[1].text == "is gone: restore it")
    }

    @Test(
        "clocks",
        arguments: [
            (Timestamp(milliseconds: 0), nil, .fault), (now, nil, .ok), (now, now + .seconds(60), .ok),
            (now, now + .seconds(61), .warning), (now, now - .seconds(9999), .ok),
        ] as [(Timestamp, Timestamp?, Check.Severity)]
    )
    func clock(now: Timestamp, lastWrite: Timestamp?, severity: Check.Severity) {
        #expect(Doctor.clock(now: now, lastWrite: lastWrite).severity == severity)
    }

    @Test(
        "the endpoint's clock",
        arguments: [
            (.zero, .ok, "agree"), (.seconds(60), .ok, "agree"), (.seconds(61), .warning, "1 min 1 s behind"),
            (.seconds(-7200), .warning, "2 h ahead of"),
        ] as [(Duration, Check.Severity, String)]
    )
    func skew(endpointLead: Duration, severity: Check.Severity, text: String) {
        let check = Doctor.skew(now: Self.now, endpointTime: Self.now + endpointLead)
        #expect(check.severity == severity)
        #expect(check.text.contains(text))
    }

    @Test(
        "disk space",
        arguments: [(1 << 20, .fault), (100 << 20, .warning), (1 << 30, .ok)] as [(Int64, Check.Severity)]
    )
    func space(free: Int64, severity: Check.Severity) {
        #expect(Doctor.space(free).severity == severity)
    }

    @Test(
        "the date of an answer is parsed in its only form",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Fri, 15 Jan 2027 08:00:00 GMT", 1_800_000_000),
        ] as [(String, Int64)]
    )
    func date(header: String, seconds: Int64) {
        #expect(Timestamp(httpDate: header) == Timestamp(secondsSince1970: seconds))
    }

    @Test(
        "a date in another form is refused",
        arguments: [
            "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
            "Tue, 29 Feb 2023 08:49:37 GMT",
        ]
    )
    func noDate(header: String) {
        #expect(Timestamp(httpDate: header) == nil)
    }

    @Test(
        "Google's endpoints are recognised",
        arguments: [
            ("https://oauth2.googleapis.com/token", true), ("https://accounts.google.com/o/oauth2/token", true),
            ("https://oauth2.googleapis.com.example.org/token", false), ("http://127.0.0.1:8080/token", false),
        ]
    )
    func google(endpoint: String, isGoogles: Bool) throws {
        #expect(Doctor.isGoogles(try Endpoint(endpoint)) == isGoogles)
    }
}

extension CheckTests {
    @Test("the ages of lost grants are shown for each client id, and a project in testing is a warning")
    func losses() {
        var grants = GrantStatistics.empty
        #expect(Doctor.lossChecks(of: grants).isEmpty)
        var ends = ConsentEnds()
        ends.losses = [7.04, 12.25, 7].map { .seconds(86_400 * $0) }
        grants.consentEnds = ["a": ends]
        #expect(
            Doctor.lossChecks(of: grants) == [
                Check.ok(
                    "client 'a': 3 in the last 30 days, at these ages in days, the latest first: 7.0, 12.3, 7.0"
                ).named("lost grants")
            ]
        )
        grants.consentEnds["a"]?.losses[1] = .seconds(7 * 86_400)
        let checks = Doctor.lossChecks(of: grants)
        #expect(checks.map(\.severity) == [.ok, .warning] && checks[1].name == "project in testing")
    }
}
