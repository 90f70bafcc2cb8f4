"""tenon.doctor: which plug-ins were found, how far each was loaded, which devices they have, and which settings
apply."""

import sys

from tenon import _tenon


def _indented(text, indent):
    return "".join(f"{indent}{line}\n" for line in text.splitlines())


def _remedy(text, indent):
    return _indented("What to do: " + text, indent) if text else ""


def _plug_ins(report):
    text = "Plug-ins\n"
    for folder in report["folders"]:
        found = f"not searched: {folder['why_not']}" if folder["why_not"] else f"{folder['candidates']} found"
        text += f"  {folder['path']} ({folder['source']}): {found}\n"
    for each in report["candidates"]:
        text += f"  {each['provider']} {each['version']} [{each['stage']}, {each['code']}] {each['path'] or 'in the program'}\n"
        text += _indented(each["sentence"], "    ") + _remedy(each["remedy"], "    ")
    return text


def _devices(report):
    text = "\nDevices\n"
    for each in report["devices"]:
        note = "default" if each.spelling == report["default_device"] else ""
        if not each.usable:
            note = f"not usable: {each.unusable_reason}"
        memory = f"{each.memory / 2**30:.1f} GiB" if each.memory else "-"
        text += f"  {each.spelling:10} {each.kind:12} {memory:>10}  {each.name}  {note}".rstrip() + "\n" + _remedy(each.remedy, "    ")
    if not report["devices"]:
        text += "  none\n"
    for sentence, remedy in report["findings"]:
        text += _indented(sentence, "  ") + _remedy(remedy, "    ")
    return text


def _settings(report):
    text = "\nSettings (argument > environment > config file > default)\n"
    for row in report["settings"]:
        text += f"  {row['key']:20} {row['value'] or '-':24} {row['level']} {row['where']}".rstrip() + "\n"
    for path in report["config_files"]:
        text += f"  read {path}\n"
    for warning in report["warnings"]:
        text += f"  warning: {warning}\n"
    if report["settings_error"]:
        text += f"  error: {report['settings_error']}\n"
    return text


def doctor(file=None):
    """Prints what Tenon found on this machine, and what to do about problems, to `file` (default: standard output).
    Returns True if there is a usable default device."""
    report = _tenon._report()
    text = _plug_ins(report) + _devices(report) + _settings(report)
    if report["default_device"]:
        text += f"\nDefault device: {report['default_device']}, by {report['default_device_by']}\n"
    else:
        text += "\nDefault device: none\n" + _indented(report["default_device_error"], "  ") + _remedy(report["default_device_remedy"], "  ")
    (file or sys.stdout).write(text)
    return bool(report["default_device"])
