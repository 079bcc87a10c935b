/// The access that a command needs to the database.
package enum DatabaseAccess {
    case reading
    case changing
}
