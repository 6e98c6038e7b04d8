"""The command `fluss completion`: the scripts that make bash, zsh and fish ask `fluss` itself.

A script passes the line up to the cursor in the environment; `cli.completion` answers with one
candidate in each line. Where there is none, the shell completes the names of files.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer


class Shell(StrEnum):
    """A shell with programmable completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.", show_default=False)],
) -> None:
    """Print the script that completes commands, options, tables and columns in a shell.

    Put the line of your shell into its startup file. Names of tables and columns are asked from the
    cluster that the line names, for at most a second.

    Examples:
        source <(fluss completion bash)                 # in ~/.bashrc
        source <(fluss completion zsh)                  # in ~/.zshrc, after compinit
        fluss completion fish | source                  # in ~/.config/fish/config.fish
    """
    typer.echo(SCRIPTS[shell], nl=False)


SCRIPTS: Final = {
    Shell.BASH: r"""_fluss_completion() {
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        COMPREPLY+=("$candidate")
    done < <(_FLUSS_COMPLETE=bash _FLUSS_LINE="${COMP_LINE:0:COMP_POINT}" \
        _FLUSS_BREAKS="$COMP_WORDBREAKS" "$1" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=,/] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o default -F _fluss_completion fluss
""",
    Shell.ZSH: r"""#compdef fluss
_fluss() {
    local -a found plain open
    local line="${(j: :)words[1,CURRENT]}" candidate
    found=("${(@f)$(_FLUSS_COMPLETE=zsh _FLUSS_LINE="$line" "${words[1]}" 2>/dev/null)}")
    for candidate in "${found[@]}"; do
        case "${candidate%%	*}" in
            "") ;;
            *[=,/]) open+=("${candidate%%	*}") ;;
            *) plain+=("${candidate/	/:}") ;;
        esac
    done
    if (( ! ${#plain} && ! ${#open} )); then
        _files
        return
    fi
    (( ${#open} )) && compadd -S '' -- "${open[@]}"
    (( ${#plain} )) && _describe -V fluss plain
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _fluss "$@"
else
    compdef _fluss fluss
fi
""",
    Shell.FISH: r"""function __fluss_complete
    set -l found (env _FLUSS_COMPLETE=fish _FLUSS_LINE=(commandline -cp | string collect) fluss 2>/dev/null)
    if test (count $found) -eq 0
        __fish_complete_path (commandline -ct)
    else
        printf '%s\n' $found
    end
end
complete -c fluss -f -a '(__fluss_complete)'
""",
}
