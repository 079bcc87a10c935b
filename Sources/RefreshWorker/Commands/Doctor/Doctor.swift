import Base
import Status
import Storage
import Telemetry

extension Command {
    /// `doctor`: checks the installation.
    static let runDoctor = Command(
        words: ["doctor"],
        summary: "check the set-up and say what to fix",
        discussion: """
            Checks the configuration, the modes and owners of files, the key ring, the secrets and the services of the \
            listeners, their addresses, the database and its spill files, the clock, the client ids and the endpoints, \
            and gives advice for each fault. It changes nothing. It refuses the settings that the daemon refuses. It \
            asks the token endpoint with a made-up token, which shows if the endpoint knows the client id.
            """,
        options: [.jsonObject],
        settings: Setting.Name.allCases.filter { $0 != .runOnce },
        examples: [
            "refresh-worker doctor": "check the installation",
            """
            refresh-worker doctor --json | jq -r '.checks[] | select(.result != "ok") | .advice // .text'
            """: "only what to do",
        ],
        exitCodes: [.success, .usage, .peerUnreachable, .internalFailure, .inputOutput, .configuration]
    ) { _, context, output in
        let isColoured = output.isColoured
        let checks = try await Doctor(context: context).run { check in
            let line = DocumentFolder.current.located(check.line(isColoured: isColoured))
            if !output.isJSON { Output.standard.line(line) }
        }
        output.answer(checks.summary) { line in checks.write(to: &line, documents: .current) }
        return checks.exitCode
    }
}

/// Checks everything that the worker depends on, and changes nothing.
struct Doctor: Sendable {
    let context: CommandContext

    var configuration: Configuration { context.configuration }

    /// Runs the checks one after another and reports each result immediately, because some take time.
    func run(report: (Check) -> Void) async throws -> [Check] {
        var all: [Check] = []
        func add(_ checks: [Check]) {
            checks.forEach(report)
            all += checks
        }
        if ServiceUser.isRoot {
            let advice = "if the service has a user of its own, run: runuser -u USER -- refresh-worker doctor"
            add([.ok("root, who can read and write every file; \(advice)").named("user")])
        }
        add(await BlockingCallQueue.files.run { fileChecks() + servingChecks() + openTelemetryChecks })
        add(try await databaseChecks())
        add(await BlockingCallQueue.files.run { spillChecks() })
        add(try await clockChecks())
        add(await endpointChecks())
        return all
    }

    func spillChecks() -> [Check] {
        let location = context.spillLocation(of: configuration.database)
        var checks: [Check] = []
        do throws(SystemCallError) {
            checks = try SpilledFile.list(in: location).map { .warning($0.sentence(at: context.time.now)) }
            if checks.isEmpty { checks = [.ok("none in \(location.folder)")] }
        } catch {
            let advice = "let the worker's user read the folder, which might hold results that were not stored"
            checks = [.warning("\(error)", advice: advice)]
        }
        return checks.map { $0.named("spill files") }
    }

    /// Looks for findings in the stored state, as `status` does, and counts the grants.
    ///
    /// Findings are warnings, because the daemon starts in spite of them.
    func statusChecks(of store: any Store) async throws -> (grants: GrantStatistics?, checks: [Check]) {
        let snapshot = try await context.status(from: store).snapshot(includesSlowParts: false)
        let checks =
            Self.checks(of: snapshot.findings) + Self.eventChecks(of: snapshot)
            + Self.lossChecks(of: snapshot.grants)
        return (snapshot.countedGrants, checks)
    }

    /// Says if no security event ever came: not a finding, because many apps do not use them.
    private static func eventChecks(of snapshot: StatusSnapshot) -> [Check] {
        guard snapshot.receivesSecurityEvents, snapshot.lastSecurityEventAt == nil else { return [] }
        let text = "none was ever received; if you use them, run: \(Finding.requestSecurityEvent)"
        return [.ok(text).named("events from Google")]
    }

    /// Shows the ages at which Google ended the grants of each client id: equal ages have one cause.
    static func lossChecks(of grants: GrantStatistics) -> [Check] {
        let lost = grants.consentEnds.filter { !$0.value.losses.isEmpty }.sorted { $0.key < $1.key }
        let ages = lost.map { client, ends in
            let shown = ends.losses.prefix(shownAges).map(\.inDays) + (ends.losses.count > shownAges ? ["…"] : [])
            let finding = """
                client \(DisplayedText(client)): \(ends.losses.count) in the last 30 days, at these ages in days, the latest \
                first: \(shown.joined(separator: ", "))
                """
            return Check.ok(finding).named("lost grants")
        }
        let warnings = grants.projectsInTesting.map { project in
            Check.warning(project.text, advice: "see docs/runbook.md#\(AlarmKind.projectInTesting.rawValue)")
                .named("project in testing")
        }
        return ages + warnings
    }

    private static let shownAges = 20

    static func checks(of findings: [Finding]) -> [Check] {
        let shown = findings.filter { !$0.isCheckedByDoctor }
        let checks: [Check] =
            shown.isEmpty ? [.ok("no concern")] : shown.map { .warning("\($0.severity): \($0.text) (\($0.runbook))") }
        return checks.map { $0.named("status") }
    }
}
