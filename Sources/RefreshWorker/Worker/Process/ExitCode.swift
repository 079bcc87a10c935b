/// The exit codes of the program, from sysexits.h, so that scripts, cron and systemd can distinguish the cases
/// (https://man7.org/linux/man-pages/man3/sysexits.h.3head.html).
enum ExitCode: Int32, CaseIterable, Sendable {
    case success = 0
    case lookTomorrow = 1
    case cannotTell = 2
    case soonWithoutTokens = 3
    case withoutTokens = 4
    case usage = 64
    case badData = 65
    case inputUnreadable = 66
    case unknownUser = 67
    case peerUnreachable = 69
    case internalFailure = 70
    case cannotCreate = 73
    case inputOutput = 74
    case leftForLater = 75
    case userMustAct = 77
    case configuration = 78
    case hungUp = 129
    case interrupted = 130
    case terminated = 143

    /// The meaning of the code, for the help.
    var meaning: String {
        switch self {
        case .success: "done"
        case .lookTomorrow: "only status: a person should look within a day"
        case .cannotTell: "only status: the database cannot be read, so the status is unknown"
        case .soonWithoutTokens: "only status: users will soon be without tokens"
        case .withoutTokens: "only status: users are without tokens now"
        case .usage: "the command line is wrong; nothing was done"
        case .badData: "the input is invalid; the problems were reported"
        case .inputUnreadable: "an input file cannot be read"
        case .unknownUser: "the user, or a grant of the user, is not stored"
        case .peerUnreachable: "Google, or the receiver of a notice, could not be reached, or answered with a fault"
        case .internalFailure: "a defect of this program; please report it"
        case .cannotCreate: "an output file cannot be created"
        case .inputOutput: "reading or writing failed, for instance a full disk, or a database out of reach"
        case .leftForLater: "grants remain due, the database is busy, or a grant changed during a question: try again"
        case .userMustAct: "the user must act: sign in again, or have the grant unblocked"
        case .configuration: "the configuration is wrong: a setting, the key ring or the database"
        case .hungUp: "SIGHUP stopped the command"
        case .interrupted: "SIGINT, or a person's answer to a question, stopped the command"
        case .terminated: "SIGTERM stopped the command"
        }
    }
}

extension [ExitCode] {
    /// Returns the codes of every command that opens the database, and the others of a command, in their order.
    static func ofDatabase(_ others: ExitCode...) -> [ExitCode] {
        let usual: [ExitCode] = [.success, .usage, .internalFailure, .inputOutput, .leftForLater, .configuration]
        return (usual + others).sorted { $0.rawValue < $1.rawValue }
    }
}
