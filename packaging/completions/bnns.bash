# Completion of bnns for bash. Commands and options are those that the tool itself lists.
_bnns() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} tool=${COMP_WORDS[0]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    local commands
    commands=$("$tool" --help 2> /dev/null | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$commands --help --version" -- "$current")
    return
  fi
  case $previous in
    --model) mapfile -t COMPREPLY < <(compgen -W "cnn mlp resnet lstm" -- "$current"); return ;;
    --schedule) mapfile -t COMPREPLY < <(compgen -W "linear constant step cosine" -- "$current"); return ;;
    --augment) mapfile -t COMPREPLY < <(compgen -W "none shift mirror" -- "$current"); return ;;
    --data) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
  esac
  if [[ $current == -* ]]; then
    local options
    options=$("$tool" "$command" --help 2> /dev/null | sed -n 's/^  \(-h,\)\{0,1\}\(--[a-z-]*\).*/\2/p')
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _bnns bnns
